"""Breakpoints of a dashboard found, named by their pull requests, and kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from sqlalchemy import func, select

from formulacode_dagster.operating.files.atomic import disk_errors, replacing
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.tables import MERGED_PULL_REQUESTS
from formulacode_dagster.sources.git.history import Mirror

from .choices import MINIMUM_CHANGE, Method
from .finding import find_breakpoints
from .persistence import Breakpoints, save_breakpoints
from .pull_requests import pull_requests_of_mirror, with_pull_requests


@dataclass(frozen=True)
class MeasuredSeries:
    """The series of a dashboard by one source, and whose commits they are of."""

    dashboard: str
    source: Source
    repository: str
    points: pl.DataFrame
    series: pl.DataFrame
    revisions: pl.DataFrame


def find_and_keep(
    database: Database,
    measured: MeasuredSeries,
    folder: Path,
    *,
    mirror: Mirror | None,
    method: Method = Method.SEEDED,
    minimum_change: float = MINIMUM_CHANGE,
) -> Breakpoints:
    """The breakpoints of *measured*, kept in *database*, and in *folder* as Parquet by source and method.

    Pull requests come from intake, and from the *mirror* if there is one. Raises ConfigurationError as `find_steps`
    does, GitError, OutsideSystemError for the database or the disk.
    """
    found = find_breakpoints(measured.points, measured.series, measured.revisions, method, minimum_change)
    line, merged = pull_requests_of_mirror(mirror) if mirror is not None else ([], {})
    merged = {**merged, **_taken_in(database, measured.repository)}
    breakpoints = replace(found, commits=with_pull_requests(found.commits, line, merged))
    with database.transaction() as connection:
        save_breakpoints(connection, measured.dashboard, measured.source, method, breakpoints)
    for name, table in (("steps", breakpoints.steps), ("commits", breakpoints.commits)):
        path = folder / measured.source / f"{name}_{method}.parquet"
        with disk_errors(str(path)), replacing(path) as partial:
            table.write_parquet(partial)
    return breakpoints


def _taken_in(database: Database, repository: str) -> dict[str, int]:
    """The merge commits of *repository* that intake knows, and the numbers of their pull requests."""
    if not repository:
        return {}
    columns = MERGED_PULL_REQUESTS.columns
    of = func.lower(columns.repository) == repository.lower()
    with database.transaction() as connection:
        rows = connection.execute(select(columns.merge_commit_sha, columns.number).where(of)).all()
    return {sha: number for sha, number in rows if sha}
