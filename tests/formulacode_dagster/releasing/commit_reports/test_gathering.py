"""`fc-data dashboards reports`, as a person types it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.persistence import (
    NAMED_COMMITS,
    NAMED_STEPS,
    Breakpoints,
    save_breakpoints,
)
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.sources.dashboards.persistence import save_site
from formulacode_dagster.sources.dashboards.site import read_site
from formulacode_dagster.sources.dashboards.sites import Dashboard
from sandbox.server import serving
from tests.support import codecov
from tests.support.asv_site import write_site
from tests.support.command_line import FcData
from tests.support.git_world import BareRepository

TOKEN = "t"


@pytest.fixture
def shas(tmp_path: Path) -> list[str]:
    repository = BareRepository(tmp_path / "origin/acme/tiny.git")
    marks = [
        repository.add("Begin", files={"tiny.py": "a\nb\n"}),
        repository.add("Cache lookups (#7)\n\nThey were slow.", files={"tiny.py": "a\nc\n", "new.py": "d\n"}),
    ]
    by_mark = repository.write()
    return [by_mark[mark] for mark in marks]


@pytest.mark.slow
def test_the_command_of_the_documentation_writes_a_page_for_each_commit(
    shas: list[str], database: Database, database_url: str, call_fc_data: FcData, tmp_path: Path
) -> None:
    before, after = shas
    site = read_site(write_site(tmp_path / "site"))
    step = {
        "before_revision": 105, "after_revision": 106, "before_hash": before, "after_hash": after, "series": 0,
        "benchmark": "bench.time_it", "parameters": ["1"], "before": 2.0, "after": 1.0, "ratio": 0.5,
        "ratio_low": 0.4, "ratio_high": 0.6, "points_before": 6, "points_after": 6, "direction": "improvement",
    }  # fmt: skip
    made = {name: step[name] for name in ("before_revision", "after_revision", "before_hash", "after_hash")}
    commits = [
        {**made, "improved": 3, "regressed": 0, "steps": 3, "median_ratio": 0.5, "pull_request": 7},
        {**made, "after_hash": "e" * 40, "improved": 1, "regressed": 0, "steps": 1, "median_ratio": 0.9},
    ]
    with database.transaction() as connection:
        board = Dashboard(name="numpy", repository="acme/tiny")
        save_site(connection, board, Source.PUBLISHED, site, run_id="", read_at=datetime(2026, 1, 1, tzinfo=UTC))
        found = Breakpoints(pl.DataFrame([step], schema=NAMED_STEPS), pl.DataFrame(commits, schema=NAMED_COMMITS))
        save_breakpoints(connection, "numpy", Source.PUBLISHED, Method.SEEDED, found)
    reported = {("acme/tiny", after): {"tiny.py": (3, 0, 1), "elsewhere.py": (99, 0, 0)}}
    with serving(codecov.app(reported, token=TOKEN)) as url:
        ran = call_fc_data(
            *("dashboards", "reports", "numpy", "pages", "--coverage"),
            FC_DATABASE_URL=database_url,
            GITHUB_CLONE_URL=(tmp_path / "origin").as_uri(),
            CODECOV_URL=url,
            CODECOV_TOKEN=TOKEN,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 pages" in ran.stdout
    assert "1 commits are not in the repository" in ran.stdout
    page = (tmp_path / f"pages/{after}.md").read_text()
    assert page.startswith("# Cache lookups (\\#7)\n")
    assert "| `tiny.py` | 1 | 1 | 3 of 4, 75% |" in page
    assert "| `new.py` | 1 | 0 | – |" in page
    assert (tmp_path / f"pages/{after}/0.svg").read_text().startswith("<svg")
    table = pl.read_parquet(tmp_path / "pages/reports.parquet")
    assert table.select("commit", "lines_hit", "lines_known").rows() == [(after, 3, 4), ("e" * 40, 0, 0)]
    assert table["tokens"][0] == round(len(page.encode()) / 4)
