"""Dashboards in Postgres; each reading replaces the previous one, completely or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.bulk import upsert
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.frames import read_frame, replace_frame
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import DASHBOARDS, SITE_TABLES

from .sites import Dashboard
from .tables import FRAMES, SiteTables, tables_of, write_tables

_FIGURES = ("project", "commit_url", "graphs_expected", "graphs_read", "summaries_expected", "summaries_read")


def save_site(
    connection: Connection, dashboard: Dashboard, source: Source, site: SiteTables, *, run_id: str, read_at: datetime
) -> None:
    """Make *site* all that is kept of *dashboard* by *source*."""
    key = {"dashboard": dashboard.name, "source": source.value}
    row: dict[str, Any] = {
        **key,
        "address": dashboard.site if source is Source.PUBLISHED else dashboard.results,
        "repository": dashboard.repository,
        "benchmarks": site.benchmarks,
        **{name: getattr(site, name) for name in _FIGURES},
        "run_id": run_id,
        "read_at": read_at,
    }
    upsert(connection, DASHBOARDS, [row])
    for name, frame in tables_of(site).items():
        replace_frame(connection, SITE_TABLES[name], key, frame)


def keep_site(
    database: Database, dashboard: Dashboard, source: Source, site: SiteTables, folder: Path, run_id: str
) -> None:
    """Keep *site* in *database*, and as Parquet in *folder*, by its source.

    Raises OutsideSystemError when the database does not answer or the disk is full.
    """
    with database.transaction() as connection:
        save_site(connection, dashboard, source, site, run_id=run_id, read_at=datetime.now(UTC))
    write_tables(tables_of(site), folder / source.value)


def kept_site(database: Database, dashboard: str, source: Source) -> SiteTables | None:
    """Return the stored site of *dashboard* from *source*; None if there is none."""
    with database.transaction() as connection:
        return load_site(connection, dashboard, source) if source in sources_of(connection, dashboard) else None


def kept_sites(database: Database, dashboard: str) -> dict[Source, SiteTables]:
    """Return the stored sites of *dashboard* by source. Raises ConfigurationError if there is none."""
    with database.transaction() as connection:
        sites = {source: load_site(connection, dashboard, source) for source in sources_of(connection, dashboard)}
    if not sites:
        raise ConfigurationError(
            f"there is no data on dashboard {dashboard}",
            remedy="Materialize `dashboards` or `benchmark_results` first; it needs a site, or raw results",
        )
    return sites


def load_site(connection: Connection, dashboard: str, source: Source) -> SiteTables:
    """Load the site that `save_site` stored. Raises ConfigurationError if there is none."""
    columns = DASHBOARDS.columns
    of = (columns.dashboard == dashboard) & (columns.source == source.value)
    row = connection.execute(select(DASHBOARDS).where(of)).mappings().first()
    if row is None:
        raise ConfigurationError(
            f"nothing {source} is stored of dashboard {dashboard}",
            remedy=f"Materialize it first: `{'dashboards' if source is Source.PUBLISHED else 'benchmark_results'}`",
        )
    key = {"dashboard": dashboard, "source": source.value}
    kept: dict[str, Any] = {name: row[name] for name in _FIGURES}
    kept |= {name: read_frame(connection, SITE_TABLES[name], key, schema) for name, schema in FRAMES.items()}
    return SiteTables(**kept, benchmarks=tuple(row["benchmarks"]))


def sources_of(connection: Connection, dashboard: str) -> list[Source]:
    """Return the sources with stored data of *dashboard*."""
    columns = DASHBOARDS.columns
    found = connection.execute(
        select(columns.source).where(columns.dashboard == dashboard).order_by(columns.source)
    ).scalars()
    return [Source(source) for source in found]
