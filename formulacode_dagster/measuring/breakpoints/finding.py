"""From the tables of a site to its breakpoints: named steps, and the commits that caused them."""

from __future__ import annotations

import polars as pl

from .choices import MINIMUM_CHANGE, Method
from .commits import merge_into_commits, with_hashes
from .persistence import NAMED_COMMITS, NAMED_STEPS, Breakpoints
from .steps import find_steps


def find_breakpoints(
    points: pl.DataFrame,
    series: pl.DataFrame,
    revisions: pl.DataFrame,
    method: Method = Method.SEEDED,
    minimum_change: float = MINIMUM_CHANGE,
) -> Breakpoints:
    """The breakpoints of *points*, without their pull requests. Raises ConfigurationError as `find_steps` does."""
    steps = find_steps(points, series, method, minimum_change)
    names = series.select("series", "benchmark", "parameters", "branch")
    named = with_hashes(steps.join(names, on="series", how="left", maintain_order="left"), revisions)
    commits = with_hashes(merge_into_commits(named), revisions).with_columns(
        pl.lit(None, pl.Int64).alias("pull_request")
    )
    return Breakpoints(named.select(NAMED_STEPS.names()), commits.select(NAMED_COMMITS.names()))
