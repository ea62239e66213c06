"""Comparison of two sets of breakpoints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.comparing import (
    SetName,
    replicate_and_keep,
    same_direction,
    stored_replications,
)
from formulacode_dagster.measuring.breakpoints.persistence import (
    NAMED_COMMITS,
    NAMED_STEPS,
    Breakpoints,
    save_breakpoints,
)
from formulacode_dagster.measuring.breakpoints.replication import BreakpointSet, correlation, replicate, share
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.frames import replace_frame
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import REVISIONS
from tests.formulacode_dagster.measuring.breakpoints.test_persistence import COMMIT, STEP

LISTS = pl.List(pl.String)
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def commit(number: int) -> str:
    return f"{number:040x}"


def breakpoint_set(name: str, steps: dict[tuple[str, int], float], measured: range = range(100)) -> BreakpointSet:
    """A set that measured the commits *measured*; steps by benchmark and the number of the commit that made them."""
    at = {place: {"before_hash": commit(place - 1), "after_hash": commit(place)} for _, place in steps}
    rows = [
        {**STEP, **at[place], "benchmark": benchmark, "ratio": ratio} for (benchmark, place), ratio in steps.items()
    ]
    commits = [{**COMMIT, **at[place]} for place in sorted(at)]
    revisions = [{"hash": commit(number), "date": BEGUN + timedelta(days=number)} for number in measured]
    return BreakpointSet(
        name,
        Breakpoints(pl.DataFrame(rows, NAMED_STEPS), pl.DataFrame(commits, NAMED_COMMITS)),
        pl.DataFrame(revisions),
    )


def test_sets_that_agree_are_told_so() -> None:
    steps = {(f"b{number}", 10 * number): 0.5 + number / 10 for number in range(1, 9)}
    twice = replicate(breakpoint_set("a", steps), breakpoint_set("b", steps))
    assert (twice.commits, twice.only_reference, twice.only_other, twice.pairs.height) == (8, 0, 0, 8)
    assert twice.pearson.estimate == pytest.approx(1.0)
    assert twice.spearman.estimate == pytest.approx(1.0)
    # none of eight may still be one of four
    assert twice.same_sign.estimate == 1.0
    assert twice.same_sign.low == pytest.approx(0.676, abs=0.001)
    assert (twice.bias.estimate, twice.bias.low, twice.bias.high) == pytest.approx((1.0, 1.0, 1.0))


def test_breakpoints_match_within_a_few_commits_and_count_once() -> None:
    mine = {("b", 20): 0.5, ("b", 60): 2.0, ("c", 80): 2.0}
    theirs = {("b", 23): 0.6, ("b", 24): 0.7, ("b", 90): 2.0, ("c", 60): 0.5}
    compared = replicate(breakpoint_set("a", mine), breakpoint_set("b", theirs))
    assert (compared.commits, compared.only_reference, compared.only_other) == (2, 1, 2)
    assert compared.pairs.select("benchmark", "other_ratio").rows() == [("b", 0.6)]
    strict = replicate(breakpoint_set("a", mine), breakpoint_set("b", theirs), within=1)
    assert (strict.commits, strict.pairs.height) == (1, 0)


def test_what_only_one_measured_is_not_held_against_the_other() -> None:
    mine = {("b", 20): 0.5, ("b", 80): 2.0}
    compared = replicate(breakpoint_set("a", mine), breakpoint_set("b", {("b", 20): 0.6}, range(10, 50)))
    assert (compared.first_commit, compared.last_commit) == (commit(10), commit(49))
    assert (compared.commits, compared.only_reference) == (1, 0)


def test_sets_without_a_common_commit_have_nothing_in_common() -> None:
    compared = replicate(breakpoint_set("a", {("b", 20): 0.5}), breakpoint_set("b", {("b", 120): 0.5}, range(100, 200)))
    assert (compared.first_commit, compared.commits, compared.only_reference, compared.only_other) == ("", 0, 0, 0)
    assert (compared.pearson.estimate, compared.same_sign.estimate, compared.bias.estimate) == (None, None, None)


@pytest.mark.parametrize("of_ranks", [False, True])
def test_intervals_of_correlations_hold_the_truth_as_often_as_they_say(of_ranks: bool) -> None:
    rng = np.random.default_rng(14)
    held = 0
    # the rank correlation of two normal values of correlation 0.6
    truth = 6 / np.pi * np.arcsin(0.3) if of_ranks else 0.6
    for _ in range(400):
        x = rng.normal(size=40)
        y = 0.6 * x + 0.8 * rng.normal(size=40)
        if of_ranks:
            x, y = (values.argsort().argsort().astype(float) for values in (x, y))
        told = correlation(x, y, of_ranks=of_ranks)
        assert told.low is not None
        assert told.high is not None
        held += told.low <= truth <= told.high
    assert 0.92 <= held / 400 <= 0.98


def test_too_little_has_no_interval() -> None:
    ones = np.ones(9)
    assert correlation(ones, ones).estimate is None
    assert correlation(np.array([1.0, 2.0]), np.array([1.0, 2.0])).estimate is None
    assert correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).low is None
    assert share(0, 0).estimate is None
    assert share(0, 10).low == 0.0


@pytest.mark.slow
def test_a_comparison_is_kept_shown_and_judged(database: Database, tmp_path: Path) -> None:
    steps = {(f"<b{number}>", 8 * number): 0.5 for number in range(1, 11)}
    against = dict.fromkeys(steps, 2.0)
    with database.transaction() as connection:
        for source, ratios in ((Source.PUBLISHED, steps), (Source.RESULTS, against)):
            of = breakpoint_set("", ratios).breakpoints
            save_breakpoints(connection, "sample", source, Method.SEEDED, of)
            numbered = pl.DataFrame({"revision": range(100), "tags": [[]] * 100}, {"revision": pl.Int64, "tags": LISTS})
            revisions = numbered.hstack(breakpoint_set("", ratios).revisions)
            replace_frame(connection, REVISIONS, {"dashboard": "sample", "source": source.value}, revisions)
    mine, theirs = SetName("sample", Source.PUBLISHED), SetName("sample", Source.RESULTS)
    assert replicate_and_keep(database, mine, theirs, tmp_path)[Method.SEEDED].pairs.height == 10
    with database.transaction() as connection:
        rows = stored_replications(connection, "sample")
        assert stored_replications(connection, "other") == []
    assert [(row["reference"], row["other"], row["pairs"]) for row in rows] == [
        ("sample/published", "sample/results", 10)
    ]
    judged = same_direction(rows)
    assert (judged.passed, judged.offenders) == (False, ("seeded: 0% of 10 steps",))
    assert same_direction([{**rows[0], "pairs": 9}]).passed
    assert same_direction([{**rows[0], "same_sign": 0.9}]).passed
    assert "<code>&lt;b1&gt;(&#39;é&#39;, )</code>" in (tmp_path / "replication_seeded.html").read_text()
    assert pl.read_parquet(tmp_path / "replication_seeded.parquet").height == 10
