"""Breakpoints in Postgres: the steps of a dashboard's series by a method, and the commits that made them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection, select

from formulacode_dagster.operating.store.series.frames import read_frame, replace_frame
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import BREAKPOINT_COMMITS, BREAKPOINTS, REPLICATION

from .choices import Method
from .commits import COMMITS
from .steps import STEPS

_HASHES = {"before_hash": pl.String(), "after_hash": pl.String(), "date": pl.Datetime("ms", "UTC")}
NAMED_STEPS = pl.Schema({**STEPS, "benchmark": pl.String(), "parameters": pl.List(pl.String()), **_HASHES})
"""STEPS with the names of their series and commits."""
NAMED_COMMITS = pl.Schema({**COMMITS, **_HASHES, "pull_request": pl.Int64()})
"""COMMITS with their names, and the pull request that caused them, if known."""


@dataclass(frozen=True)
class Breakpoints:
    """The steps of a dashboard (NAMED_STEPS), and the commits that made them (NAMED_COMMITS)."""

    steps: pl.DataFrame
    commits: pl.DataFrame


def save_breakpoints(
    connection: Connection, dashboard: str, source: Source, method: Method, breakpoints: Breakpoints
) -> None:
    """Make *breakpoints* all that is kept of *dashboard* by *source* and *method*."""
    key = _key(dashboard, source, method)
    replace_frame(connection, BREAKPOINTS, key, breakpoints.steps.select(NAMED_STEPS.names()))
    replace_frame(connection, BREAKPOINT_COMMITS, key, breakpoints.commits.select(NAMED_COMMITS.names()))


def load_breakpoints(
    connection: Connection, dashboard: str, source: Source, method: Method = Method.SEEDED
) -> Breakpoints:
    """Load the steps that `save_breakpoints` stored; empty if there are none."""
    key = _key(dashboard, source, method)
    return Breakpoints(
        read_frame(connection, BREAKPOINTS, key, NAMED_STEPS),
        read_frame(connection, BREAKPOINT_COMMITS, key, NAMED_COMMITS),
    )


def methods_of(connection: Connection, dashboard: str, source: Source) -> list[Method]:
    """Return the methods with stored steps of *dashboard* from *source*."""
    columns = BREAKPOINTS.columns
    of = (columns.dashboard == dashboard) & (columns.source == source.value)
    return [Method(name) for name in connection.execute(select(columns.method).where(of).distinct()).scalars()]


def _key(dashboard: str, source: Source, method: Method) -> dict[str, str]:
    return {"dashboard": dashboard, "source": source.value, "method": method.value}


def save_replications(connection: Connection, dashboard: str, rows: list[dict[str, object]]) -> None:
    """Make *rows* all that is kept of the replications of *dashboard*."""
    columns = [column.name for column in REPLICATION.columns if not column.primary_key]
    frame = pl.DataFrame([[row[name] for name in columns] for row in rows], schema=columns, orient="row")
    replace_frame(connection, REPLICATION, {"dashboard": dashboard}, frame)
