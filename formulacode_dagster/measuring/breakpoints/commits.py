"""Steps of many benchmarks merged into the commits that made them."""

from __future__ import annotations

import polars as pl

from .direction import Direction

COMMITS = pl.Schema(
    {
        "before_revision": pl.Int64(),
        "after_revision": pl.Int64(),
        "improved": pl.UInt32(),
        "regressed": pl.UInt32(),
        "steps": pl.UInt32(),
        "median_ratio": pl.Float64(),
        "largest_change": pl.Float64(),
    }
)
"""One row a range of commits `before..after`; `improved` and `regressed` count benchmarks, not their parameters.
`largest_change` is the ratio that is furthest from 1."""
_RANGE = ("branch", "before_revision", "after_revision")


def merge_into_commits(steps: pl.DataFrame) -> pl.DataFrame:
    """The commits (COMMITS) at which *steps* (STEPS, with `benchmark` and `branch`) happened.

    Benchmarks are measured at different revisions, so the same commit appears in ranges of several widths. Ranges of a
    branch that share a commit are merged and narrowed to their intersection: the fewest commits that explain all steps.
    asv numbers the commits of all branches in one sequence, so ranges of two branches may overlap without a common
    commit; those that come to the same range are one.
    """
    ranges = steps.select(_RANGE).unique().sort("branch", "after_revision", "before_revision")
    groups = pl.concat([_with_groups(each) for each in ranges.partition_by("branch")] or [_with_groups(ranges)])
    of = pl.col("direction")
    merged = (
        steps.join(groups, on=_RANGE)
        .with_columns(
            pl.col("before_revision").max().over("branch", "group"),
            pl.col("after_revision").min().over("branch", "group"),
        )
        .group_by("before_revision", "after_revision")
        .agg(
            pl.col("benchmark").filter(of == Direction.IMPROVEMENT).n_unique().alias("improved"),
            pl.col("benchmark").filter(of == Direction.REGRESSION).n_unique().alias("regressed"),
            pl.len().alias("steps"),
            pl.col("ratio").median().alias("median_ratio"),
            pl.col("ratio").sort_by(pl.col("ratio").log().abs(), nulls_last=False).last().alias("largest_change"),
        )
    )
    return merged.sort("after_revision", "before_revision").select(
        [pl.col(name).cast(kind) for name, kind in COMMITS.items()]
    )


def _with_groups(ranges: pl.DataFrame) -> pl.DataFrame:
    """*ranges* of a branch, sorted by their ends, with the number of the group of each: a range joins the first one
    that ends after it begins.
    """
    groups: list[int] = []
    end = None
    for before, after in ranges.select("before_revision", "after_revision").iter_rows():
        if end is None or before >= end:
            end = after
            groups.append(len(groups) and groups[-1] + 1)
        else:
            groups.append(groups[-1])
    return ranges.with_columns(pl.Series("group", groups, dtype=pl.UInt32))


def with_hashes(ranges: pl.DataFrame, revisions: pl.DataFrame) -> pl.DataFrame:
    """*ranges* with the `before_hash` and `after_hash` of their revisions, and the `date` of the one after."""
    of = revisions.select("revision", "hash", "date")
    before = of.select(pl.col("revision").alias("before_revision"), pl.col("hash").alias("before_hash"))
    after = of.select(pl.col("revision").alias("after_revision"), pl.col("hash").alias("after_hash"), "date")
    joined = ranges.join(before, on="before_revision", how="left", maintain_order="left")
    return joined.join(after, on="after_revision", how="left", maintain_order="left")
