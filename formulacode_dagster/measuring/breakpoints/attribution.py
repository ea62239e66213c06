"""Breakpoints of a dashboard found, named by the pull requests that caused them, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from sqlalchemy import func, select

from formulacode_dagster.operating.files.atomic import disk_errors, replacing
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.tables import MERGED_PULL_REQUESTS
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.log import read_commits, read_heads
from formulacode_dagster.sources.offline.marks import marks

from .choices import MINIMUM_CHANGE, Method
from .finding import find_breakpoints
from .persistence import Breakpoints, save_breakpoints


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


def pull_requests_of_mirror(mirror: Mirror) -> tuple[list[str], dict[str, int]]:
    """The default branch's first-parent line, oldest first, and which of its commits merged which pull request.

    Raises GitError.
    """
    heads = read_heads(mirror.path)
    line = read_commits(mirror.path, "--first-parent", revisions=[heads.tip])
    merged = {mark.commit.sha: number for number, mark in marks(line, heads).items()}
    return [commit.sha for commit in reversed(line)], merged


def with_pull_requests(commits: pl.DataFrame, line: list[str], merged: Mapping[str, int]) -> pl.DataFrame:
    """Return *commits* with `pull_request`, the only one in `before_hash..after_hash`; null if there are several.

    For a range outside *line*, the history of the default branch, it is the one that ends it.
    """
    places = {commit: place for place, commit in enumerate(line)}

    def brought(before: str | None, after: str | None) -> int | None:
        first, last = places.get(before or ""), places.get(after or "")
        if first is None or last is None or last <= first:
            return merged.get(after or "")
        numbers = {merged[commit] for commit in line[first + 1 : last + 1] if commit in merged}
        return numbers.pop() if len(numbers) == 1 else None

    numbers = [brought(before, after) for before, after in commits.select("before_hash", "after_hash").iter_rows()]
    return commits.with_columns(pl.Series("pull_request", numbers, pl.Int64))
