"""Suites that are tried, and the final result if none reaches the change."""

from __future__ import annotations

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.measuring.measurement.changed_code import ChangedCode
from formulacode_dagster.measuring.measurement.choosing import Choice, Chooser
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.relevance import UntimedCounts
from formulacode_dagster.measuring.measurement.surveyed import Surveyed
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.models.reasons import FailureKind, RejectionReason

OTHERS = [SuiteFiles("later commit", {"a": b"1"}), SuiteFiles("12 tests", {"a": b"2"})]
UNFINISHED = ItemFailure(FailureKind.SURVEY_UNFINISHED, "no time to run 3 of 5 benchmarks")
TIMEOUT = ItemFailure(FailureKind.TIMEOUT, "surveying the suite took too long")
NOTHING = Rejection(RejectionReason.NO_RELEVANT_WORKLOAD, "none of 5 benchmarks executes it")


class Laid:
    """An arm that accepts suites."""

    def write(self, _files):
        """It is there."""

    def restore(self):
        """It is gone."""


@pytest.fixture
def chosen(monkeypatch):
    """The chosen suite if the first and the others end as scripted, by name; and those tried."""

    def choose(first, *others, unsurveyed=()):
        left = iter(unsurveyed)
        ends = {BASE_SUITE.name: first} | dict(zip((suite.name for suite in OTHERS), others, strict=True))

        def select(_chooser, suite, *_known, **_reserve):
            choose.tried.append(suite.name)
            if choose.tried.count(suite.name) > 1 and choose.later is not None:
                raise choose.later
            if ends[suite.name] is not None:
                raise ends[suite.name]
            # without candidates: nothing of it is aimed
            return Choice(suite, [], [], ChangedCode({}, {}, ()), UntimedCounts(unsurveyed=next(left, 0)))

        monkeypatch.setattr(Chooser, "_select", select)
        monkeypatch.setattr(Chooser, "_changed", lambda *_: None)
        surveyed = Surveyed()
        remotes = {arm: Laid() for arm in Arm}
        chooser = Chooser(remotes, (), {}, None, surveyed, "benchmarks", None, None, TimeBudget(60), Log(None))
        return chooser.choose(BASE_SUITE, lambda _changed: OTHERS).suite.name

    choose.tried, choose.later = [], None
    return choose


@pytest.mark.parametrize("first", [UNFINISHED, TIMEOUT], ids=lambda end: end.kind)
def test_after_a_survey_without_time_the_next_source_is_tried(chosen, first):
    assert chosen(first, UNFINISHED, None) == "12 tests"


@pytest.mark.parametrize(
    ("first", "second", "kind", "told", "again"),
    [
        (UNFINISHED, NOTHING, "survey_unfinished", ["3 of 5 benchmarks; no other workload"], "base"),
        (TIMEOUT, UNFINISHED, "timeout", ["took too long; no other workload"], "later commit"),
        (NOTHING, UNFINISHED, "survey_unfinished", ["3 of 5 benchmarks; no other", "none of 5"], "later commit"),
    ],
)
def test_the_failure_tells_of_the_survey_and_of_what_was_tried_after_it(chosen, first, second, kind, told, again):
    with pytest.raises(ItemFailure) as caught:
        chosen(first, second, NOTHING)
    assert caught.value.kind == kind
    assert all(text in str(caught.value) for text in told)
    assert chosen.tried == ["base", "later commit", "12 tests", again]


@pytest.mark.parametrize(("unsurveyed", "again"), [((9, 4, 0), 2), ((9, 9), 1), ((0,), 0)])
def test_a_survey_without_an_aimed_benchmark_continues_after_the_other_sources(chosen, unsurveyed, again):
    assert chosen(None, NOTHING, NOTHING, unsurveyed=unsurveyed) == "base"
    assert chosen.tried == ["base", "later commit", "12 tests", *["base"] * again]


def test_a_benchmark_that_the_patch_breaks_is_seen_by_the_survey_that_continues(chosen):
    chosen.later = ItemFailure(FailureKind.ORACLE_BREAKS_BENCHMARKS, "one fails")
    with pytest.raises(ItemFailure) as caught:
        chosen(None, NOTHING, NOTHING, unsurveyed=(9,))
    assert caught.value is chosen.later
    chosen.tried, chosen.later = [], NOTHING
    assert chosen(None, NOTHING, NOTHING, unsurveyed=(9,)) == "base"


def test_a_benchmark_that_the_patch_breaks_ends_the_search_at_once(chosen):
    broken = ItemFailure(FailureKind.ORACLE_BREAKS_BENCHMARKS, "one fails")
    with pytest.raises(ItemFailure) as caught:
        chosen(broken, None, None)
    assert caught.value is broken
