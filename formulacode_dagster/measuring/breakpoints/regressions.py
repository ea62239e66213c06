"""Regressions of `asv publish`, reproduced from points with their intervals."""

from __future__ import annotations

import polars as pl

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.errors import ConfigurationError

from .choices import MINIMUM_CHANGE, Method
from .methods import library
from .steps import each_series

REGRESSIONS = pl.Schema(
    {
        "series": pl.UInt32(),
        "latest": pl.Float64(),
        "best": pl.Float64(),
        "before_revision": pl.Int64(),
        "after_revision": pl.Int64(),
        "before": pl.Float64(),
        "after": pl.Float64(),
    }
)
"""One row per upward step that was not reverted, as in `asv.step_detect.detect_regressions`."""
LEAST_INTERVALS = 0.9
"""Share of a series' values whose intervals must be known to reproduce asv's result."""
ROUNDING = 1e-9
"""Relative tolerance of levels, which covers differences between versions of asv."""


def _close(column: str) -> pl.Expr:
    return (pl.col(column) - pl.col(f"{column}_again")).abs() <= ROUNDING * pl.col(column).abs()


_EQUAL = pl.all_horizontal(
    # asv reports no previous commit for a step by a single commit
    pl.col("before_revision").is_null() | (pl.col("before_revision") == pl.col("before_revision_again")),
    *map(_close, ("before", "after", "latest", "best")),
).fill_null(value=False)
"""True if a published regression and a reproduced one are the same; False if either is missing."""


def regressions_of(points: pl.DataFrame, minimum_change: float = MINIMUM_CHANGE) -> pl.DataFrame:
    """The regressions (REGRESSIONS) of all series of *points*, by asv's own code, weighted by `low` and `high`.

    Raises ConfigurationError if asv is not installed.
    """
    step_detect = library("asv.step_detect", Method.ASV)
    rows = []
    for number, revisions, values, weights in each_series(points):
        steps = step_detect.detect_steps(values.tolist(), None if weights is None else weights.tolist())
        by_revision = [(revisions[left], revisions[right - 1] + 1, *rest) for left, right, *rest in steps]
        latest, best, jumps = step_detect.detect_regressions(by_revision, minimum_change)
        rows += [(number, latest, best, *jump) for jump in jumps or ()]
    return pl.DataFrame(rows, schema=REGRESSIONS, orient="row")


def with_intervals(
    points: pl.DataFrame, series: pl.DataFrame, revisions: pl.DataFrame, raw: pl.DataFrame
) -> pl.DataFrame:
    """Published *points* with the intervals of the same values among *raw* results.

    *raw* has `benchmark`, `parameters`, `hash`, `value`, `low`, `high`.
    """
    of = ["benchmark", "parameters", "hash", "value"]
    intervals = raw.drop_nulls(["value", "low", "high"]).unique(of).select(*of, "low", "high")
    named = points.drop("low", "high").join(series.select("series", "benchmark", "parameters"), on="series")
    named = named.join(revisions.select("revision", "hash"), on="revision", how="left")
    return named.join(intervals, on=of, how="left").select(points.columns).sort("series", "revision")


def reproduces(published: pl.DataFrame, points: pl.DataFrame, series: pl.DataFrame) -> CheckFinding:
    """Pass if exactly the *published* regressions (the site's REGRESSIONS) are reproduced from *points*.

    It judges all series whose intervals are known for LEAST_INTERVALS of the values: the same commits, levels before
    and after, latest and best value. If there are some and asv is not installed, the check fails.
    """
    numbered = series.with_columns(pl.int_range(pl.len()).over("path").alias("parameter"))
    told = published.with_columns(pl.col("parameter").fill_null(0)).join(
        numbered.select("series", "path", "parameter"), on=["path", "parameter"], how="left"
    )
    measured = points.drop_nulls("value").group_by("series").agg(pl.col("low").count() / pl.len())
    weighted = measured.filter(pl.col("low") >= LEAST_INTERVALS)["series"].implode()
    judged = told.filter(pl.col("series").is_in(weighted))
    again = judged.head(0).select(REGRESSIONS.names())
    if weighted.explode().len():
        try:
            again = regressions_of(points.filter(pl.col("series").is_in(weighted)))
        except ConfigurationError as error:
            return CheckFinding(
                passed=False, summary=f"{judged.height:,} published regressions were not looked for: {error}"
            )
    both = judged.join(again, on=["series", "after_revision"], how="full", coalesce=True, suffix="_again").join(
        series.select("series", pl.col("benchmark").alias("name")), on="series", how="left"
    )
    equal = both.filter(_EQUAL).height
    return CheckFinding.by_offenders(
        f"{equal:,} of the {judged.height:,} published regressions whose intervals are known come out again, and "
        f"{again.height - equal:,} others; of {told.height - judged.height:,} they are not known",
        [
            f"{name} at {revision}"
            for name, revision in both.filter(_EQUAL.not_()).select("name", "after_revision").iter_rows()
        ],
        {"published": told.height, "judged": judged.height, "again": again.height, "reproduced": equal},
    )
