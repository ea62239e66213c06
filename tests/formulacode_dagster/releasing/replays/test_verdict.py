from __future__ import annotations

import pytest

from formulacode_dagster.models.measurement import Metric, Returned, Verdict
from formulacode_dagster.models.release import standing
from formulacode_dagster.releasing.replays.verdict import tasks_are_confirmed, verdict_of
from tests.records import make_measurement

CONFIRMED, NOT, LOST = "confirmed", "not_confirmed", "could_not_run"


@pytest.mark.parametrize(
    ("verdict", "stands"),
    [
        (Verdict.FASTER, CONFIRMED),
        (Verdict.TRADE_OFF, NOT),
        (Verdict.UNCHANGED, NOT),
        (Verdict.SLOWER, NOT),
        (Verdict.INCONCLUSIVE, NOT),
    ],
)
def test_only_faster_by_the_rows_own_rule_confirms(verdict: Verdict, stands: str) -> None:
    assert verdict_of(make_measurement({"bench.a": 2.0}, verdict=verdict)) == (stands, None)


def test_a_task_of_memory_is_confirmed_by_memory_alone() -> None:
    for metric, stands in ((Metric.PEAK_MEMORY, CONFIRMED), (Metric.TIME, NOT)):
        measured = make_measurement({"bench.a": 2.0}, verdict=Verdict.FASTER, metric=metric)
        assert verdict_of(measured, Metric.PEAK_MEMORY) == (stands, None)


def test_what_returns_something_else_is_faster_and_not_confirmed() -> None:
    measured = make_measurement({"bench.a": 2.0}, returned={"bench.a": Returned.DIFFERENT})
    assert verdict_of(measured) == (NOT, None)


def test_where_the_control_differs_too_nothing_is_said() -> None:
    measured = make_measurement({"bench.a": 2.0}, verdict=Verdict.INCONCLUSIVE, disturbed=True)
    assert verdict_of(measured) == (LOST, "disturbed")


@pytest.mark.parametrize(
    ("verdicts", "stands"),
    [
        ([], None),
        ([LOST], LOST),
        ([CONFIRMED, LOST], CONFIRMED),
        ([CONFIRMED, NOT, CONFIRMED], NOT),
        ([NOT, LOST], NOT),
    ],
)
def test_a_task_stands_by_each_replay_that_ran(verdicts, stands) -> None:
    assert standing(verdicts) == stands


def replays_of(replay, confirmed: int, lost: int = 0, unrun: int = 0):
    verdicts = [CONFIRMED] * confirmed + [NOT] * lost + [LOST] * unrun
    return {f"a__b-{number}": [replay(verdict, task_id=f"a__b-{number}")] for number, verdict in enumerate(verdicts)}


@pytest.mark.parametrize(
    ("confirmed", "lost", "unrun", "passed"),
    [(0, 0, 0, True), (19, 1, 0, True), (18, 1, 0, False), (19, 1, 30, True), (0, 0, 1, False), (0, 1, 0, False)],
)
def test_the_check_fires_when_too_few_of_what_ran_are_confirmed(replay, confirmed, lost, unrun, passed) -> None:
    judged = tasks_are_confirmed(replays_of(replay, confirmed, lost, unrun))
    assert judged.passed is passed
    assert len(judged.offenders) == lost
    assert judged.figures["tasks"] == confirmed + lost + unrun
    assert judged.tally == ({"image_missing": {"replays": unrun}} if unrun else {})


def test_one_replay_that_does_not_confirm_undoes_those_that_did(replay) -> None:
    judged = tasks_are_confirmed({"a__b-1": [replay(CONFIRMED), replay(NOT, attempt=2), replay(CONFIRMED, attempt=3)]})
    assert not judged.passed
    assert judged.offenders == ("a__b-1",)
    assert judged.summary == "0 of 1 tasks that could be replayed are confirmed, 95% should be"
