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


def merge_into_commits(steps: pl.DataFrame) -> pl.DataFrame:
    """The commits (COMMITS) at which *steps* (STEPS, with `benchmark`) happened.

    Benchmarks are measured at different revisions, so the same commit appears in ranges of several widths. Ranges that
    share a commit are merged and narrowed to their intersection: the fewest commits that explain all steps.
    """
    groups = _groups(steps)
    of = pl.col("direction")
    merged = (
        steps.join(groups, on=["before_revision", "after_revision"])
        .group_by("group")
        .agg(
            pl.col("before_revision").max(),
            pl.col("after_revision").min(),
            pl.col("benchmark").filter(of == Direction.IMPROVEMENT).n_unique().alias("improved"),
            pl.col("benchmark").filter(of == Direction.REGRESSION).n_unique().alias("regressed"),
            pl.len().alias("steps"),
            pl.col("ratio").median().alias("median_ratio"),
            pl.col("ratio").sort_by(pl.col("ratio").log().abs(), nulls_last=False).last().alias("largest_change"),
        )
    )
    return merged.sort("after_revision").select([pl.col(name).cast(kind) for name, kind in COMMITS.items()])


def _groups(steps: pl.DataFrame) -> pl.DataFrame:
    """The number of the group of each range: by its end, a range joins the first one that ends after it begins."""
    ranges = steps.select("before_revision", "after_revision").unique().sort("after_revision", "before_revision")
    groups: list[int] = []
    end = None
    for before, after in ranges.iter_rows():
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
