"""Steps as rows: their size, interval, direction and range of commits."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from formulacode_dagster.measuring.breakpoints.commits import COMMITS, merge_into_commits
from formulacode_dagster.measuring.breakpoints.direction import Direction, direction, less_is_better
from formulacode_dagster.measuring.breakpoints.sizes import size_of_step
from formulacode_dagster.measuring.breakpoints.steps import STEPS, find_steps

SERIES = pl.DataFrame({"series": [0], "type": ["time"], "unit": ["seconds"]}, schema_overrides={"series": pl.UInt32})


def points(values: list[float | None], revisions: list[int] | None = None) -> pl.DataFrame:
    revisions = revisions or [10 * index for index in range(len(values))]
    return pl.DataFrame({"series": [0] * len(values), "revision": revisions, "value": values})


def test_a_step_tells_its_commits_its_levels_and_its_direction() -> None:
    (step,) = find_steps(points([2.0] * 10 + [1.0] * 12), SERIES).iter_rows(named=True)
    assert step == {
        "series": 0,
        "before_revision": 90,
        "after_revision": 100,
        "before": 2.0,
        "after": 1.0,
        "ratio": 0.5,
        "ratio_low": 0.5,
        "ratio_high": 0.5,
        "points_before": 10,
        "points_after": 12,
        "direction": "improvement",
    }


def test_revisions_that_were_not_measured_widen_the_range_of_commits() -> None:
    values = [1.0] * 8 + [None, float("nan")] + [2.0] * 8
    (step,) = find_steps(points(values), SERIES).iter_rows(named=True)
    assert (step["before_revision"], step["after_revision"], step["direction"]) == (70, 100, "regression")


def test_order_and_duplicates_of_revisions_change_nothing() -> None:
    values = points([1.0] * 10 + [2.0] * 10)
    doubled = pl.concat([values, values.filter(pl.col("revision") == 50)]).sample(fraction=1, shuffle=True, seed=1)
    assert find_steps(doubled, SERIES).equals(find_steps(values, SERIES))


def test_steps_below_the_least_change_are_one_level() -> None:
    values = points([1.0] * 10 + [1.04] * 10 + [1.5] * 10)
    assert find_steps(values, SERIES)["after_revision"].to_list() == [200]
    assert find_steps(values, SERIES, minimum_change=0.02)["after_revision"].to_list() == [100, 200]


def test_the_size_is_that_of_the_levels_not_of_the_points_beside_the_step() -> None:
    values = [1.0] * 20 + [2.0] * 20
    values[19], values[20] = 1.3, 2.6
    (step,) = find_steps(points(values), SERIES).iter_rows(named=True)
    assert step["ratio"] == 2.0


def test_a_step_from_nothing_has_no_ratio() -> None:
    (step,) = find_steps(points([0.0] * 10 + [4.0] * 10), SERIES).iter_rows(named=True)
    assert (step["before"], step["after"], step["ratio"], step["ratio_low"]) == (0.0, 4.0, None, None)


def test_no_points_no_steps() -> None:
    assert find_steps(points([]), SERIES, minimum_change=0).schema == STEPS
    assert find_steps(points([None] * 9), SERIES).is_empty()


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_intervals_hold_the_true_ratio_as_often_as_they_say(correlation: float) -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        noise = rng.normal(0, 0.03, 40)
        for index in range(1, 40):
            noise[index] = correlation * noise[index - 1] + np.sqrt(1 - correlation**2) * noise[index]
        size = size_of_step(np.exp(noise[:15]), 1.2 * np.exp(noise[15:]))
        assert size.low is not None
        assert size.high is not None
        held += size.low <= 1.2 <= size.high
    assert (0.92 if not correlation else 0.85) <= held / 400 <= 0.99


@pytest.mark.parametrize(
    ("kind", "unit", "less"),
    [
        ("time", "seconds", True),
        ("peakmemory", "bytes", True),
        ("track", "ms", True),
        ("track", "MiB", True),
        ("track", "MB/s", False),
        ("track", "rows per second", False),
        ("track", "GFLOPS", False),
        ("track", "unit", None),
        ("track", "steps", None),
    ],
)
def test_the_unit_tells_which_way_is_better(kind: str, unit: str, less: bool | None) -> None:
    assert less_is_better(kind, unit) is less


def test_direction_follows_from_it() -> None:
    assert direction("time", "seconds", -1.0) is Direction.IMPROVEMENT
    assert direction("track", "MB/s", -1.0) is Direction.REGRESSION
    assert direction("track", "unit", -1.0) is Direction.UNKNOWN


def steps(*rows: tuple[str, int, int, float], branch: str = "main") -> pl.DataFrame:
    found = pl.DataFrame(rows, schema=["benchmark", "before_revision", "after_revision", "ratio"], orient="row")
    faster = pl.when(pl.col("ratio") < 1).then(pl.lit("improvement")).otherwise(pl.lit("regression"))
    return found.with_columns(faster.alias("direction"), pl.lit(branch).alias("branch"))


def test_ranges_with_a_common_commit_are_one_narrowed_commit() -> None:
    commits = merge_into_commits(steps(("a", 10, 20, 0.5), ("b", 15, 18, 0.8), ("b", 15, 18, 0.9), ("c", 12, 30, 1.5)))
    assert commits.schema == COMMITS
    assert commits.rows() == [(15, 18, 2, 1, 4, pytest.approx(0.85), 0.5)]


def test_ranges_that_only_touch_are_two_commits() -> None:
    commits = merge_into_commits(steps(("a", 10, 20, 0.5), ("b", 20, 21, 0.5), ("c", 11, 20, 2.0)))
    assert commits.select("before_revision", "after_revision", "improved", "regressed").rows() == [
        (11, 20, 1, 1),
        (20, 21, 1, 0),
    ]


def test_steps_of_two_branches_are_of_two_commits_unless_they_come_to_the_same_range() -> None:
    # 12 and 18 are commits of the branch 2.x, between 10 and 20 of main in time; both have what is before 5
    main = steps(("a", 1, 4, 0.5), ("b", 1, 5, 0.8), ("a", 10, 20, 0.5))
    other = steps(("a", 1, 4, 0.5), ("c", 12, 18, 2.0), branch="2.x")
    commits = merge_into_commits(pl.concat([main, other]))
    assert commits.select("before_revision", "after_revision", "improved", "regressed", "steps").rows() == [
        (1, 4, 2, 0, 3),
        (12, 18, 0, 1, 1),
        (10, 20, 1, 0, 1),
    ]


def test_no_steps_no_commits() -> None:
    assert merge_into_commits(steps().cast({"ratio": pl.Float64})).schema == COMMITS
