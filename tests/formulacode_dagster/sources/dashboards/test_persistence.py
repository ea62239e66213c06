"""Dashboards in Postgres and out of it again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import text

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import SITE_TABLES
from formulacode_dagster.sources.dashboards.persistence import load_site, save_site, sources_of
from formulacode_dagster.sources.dashboards.site import read_site
from formulacode_dagster.sources.dashboards.sites import Dashboard
from formulacode_dagster.sources.dashboards.tables import FRAMES, SiteTables, tables_of
from tests.support.asv_site import GRAPHS, PLAIN, site_content, write_site

SAMPLE = Dashboard(name="sample", site="https://example.org/", repository="example/sample")
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def save(database: Database, site: SiteTables, dashboard: Dashboard = SAMPLE) -> None:
    with database.transaction() as connection:
        save_site(connection, dashboard, Source.PUBLISHED, site, run_id="r", read_at=NOW)


def load(database: Database, name: str = "sample") -> SiteTables:
    with database.transaction() as connection:
        return load_site(connection, name, Source.PUBLISHED)


def test_frames_and_tables_have_the_same_columns() -> None:
    assert {name: list(schema) for name, schema in FRAMES.items()} == {
        name: [column.name for column in table.columns if not column.primary_key] for name, table in SITE_TABLES.items()
    }


def test_what_is_read_back_is_what_was_written(database: Database, tmp_path: Path) -> None:
    content = site_content()["index.json"]
    content["revision_to_date"].pop("104")
    odd = {**content, "project": 'a, "b"\n\\. \x00', "tags": {"v\x001": 100}}
    site = read_site(write_site(tmp_path, **{"index.json": odd, f"{GRAPHS}/{PLAIN}.json": b"[[100, null], [99, 1.5]]"}))
    save(database, site)
    loaded = load(database)
    assert loaded.benchmarks == site.benchmarks
    assert loaded.project == site.project.replace("\x00", "\ufffd")
    assert loaded.revisions["tags"].to_list()[0] == ["v\ufffd1"]
    for name, frame in tables_of(site).items():
        same = [column for column in frame.columns if column != "tags"]
        assert tables_of(loaded)[name].select(same).equals(frame.select(same)), name


def test_a_dashboard_that_is_read_again_is_replaced_and_others_stay(database: Database, tmp_path: Path) -> None:
    save(database, read_site(write_site(tmp_path / "a")))
    save(database, read_site(write_site(tmp_path / "a")), Dashboard(name="other"))
    newer = read_site(write_site(tmp_path / "b", **{f"{GRAPHS}/{PLAIN}.json": [[100, 9.0]]}))
    save(database, newer)
    assert load(database).points.equals(newer.points)
    assert load(database, "other").points.height == 48
    with database.transaction() as connection:
        assert sources_of(connection, "sample") == [Source.PUBLISHED]


def test_what_fails_half_way_leaves_what_was_there(database: Database, tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    save(database, site)
    broken = SiteTables(**{**vars(site), "faults": pl.DataFrame({"path": ["x"], "kind": [None], "detail": [""]})})
    with pytest.raises(Exception, match="null value in column"):
        save(database, broken)
    assert load(database).points.equals(site.points)


def test_every_value_is_shown_with_its_commit_if_known(database: Database, tmp_path: Path) -> None:
    save(database, read_site(write_site(tmp_path, **{f"{GRAPHS}/{PLAIN}.json": [[99, 9.0], [100, 8.0]]})))
    query = text("SELECT revision, hash, value FROM benchmark_results WHERE benchmark = :name ORDER BY revision")
    with database.transaction() as connection:
        rows = connection.execute(query, {"name": PLAIN}).all()
    assert rows == [(99, None, 9.0), (100, f"{100:040x}", 8.0)]


def test_what_was_never_read_says_what_to_do(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="Materialize it first: `dashboards`"):
        load(database, "nowhere")
