"""The grader's judgement of an agent's results: each refusal, without the container in which attacks are run."""

from __future__ import annotations

import pytest

from formulacode_dagster.releasing.exports.grader import places
from formulacode_dagster.releasing.exports.grader.grading import Grading, Refused
from formulacode_dagster.releasing.exports.grader.judging import ArmVerdict
from formulacode_dagster.releasing.exports.grader.places import ARMS

NAME = "bench.time"
TASK = {
    "task_id": "acme__shapes-5",
    "speedup": 20.0,
    "environment": {},
    "limits": {"benchmark_seconds": 60},
    "is_time": True,
    "pass_to_pass": ["test_a", "test_b", "test_c"],
    "tests_seconds": 60,
}


def judged(speedup):
    return ArmVerdict("faster", speedup, speedup, speedup, 0.01, 1.0, {NAME: speedup})


class SampledWork:
    """Samples of an honest agent's code that is four times as fast, unless *told* differs."""

    def __init__(self, **told):
        seconds = {"base": 0.08, "control": 0.08, "oracle": 0.02, "agent": 0.02} | told.get("first", {})
        self.tampered = told.get("tampered", set())
        self.first_calls = {arm: {NAME: [seconds[arm]] * 3} for arm in ARMS}
        self.spent = {arm: [told.get("cpu", {}).get(arm, 0.5)] for arm in ARMS}
        self.imported = {arm: [told.get("imported", {}).get(arm, 0.01)] for arm in ARMS}
        self.late = told.get("late", set())

    def call_once(self, rounds):
        self.tampered = self.tampered | self.late

    def judged(self, arm):
        return judged(4.0)


class EndedHarness:
    """A harness with the tests' results *told* for each arm."""

    def __init__(self, told):
        self._told = told

    def tests(self, arm, folder, names, seconds):
        return self._told[arm]


def require_honest(**told):
    Grading(TASK, b"", "")._require_honest(SampledWork(**told), judged(4.0))


def test_honest_work_passes():
    require_honest()


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"late": {"time.perf_counter"}}, "clocks_changed"),
        ({"first": {"agent": 0.079}}, "only_called_again"),
        ({"imported": {"agent": 0.06}}, "work_moved"),
        ({"cpu": {"agent": 2.0}}, "clocks_differ"),
    ],
)
def test_work_that_only_looks_faster_is_refused(told, reason):
    with pytest.raises(Refused) as refused:
        require_honest(**told)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "told",
    [
        # what the author's own code needs before it is fast, or while importing, the agent's may too
        {"first": {"agent": 0.079, "oracle": 0.079}},
        {"imported": {"agent": 0.06, "oracle": 0.06}},
        {"cpu": {"agent": 1.4}},
    ],
)
def test_what_the_authors_code_does_too_is_no_deceit(told):
    require_honest(**told)


@pytest.mark.parametrize("tampered", [{"time.perf_counter"}, {"timeit.default_timer", "time.thread_time"}])
def test_a_clock_that_was_changed_is_named(tampered):
    with pytest.raises(Refused) as refused:
        Grading(TASK, b"", "")._require_clocks(SampledWork(tampered=tampered))
    assert (refused.value.reason, str(refused.value)) == ("clocks_changed", ", ".join(sorted(tampered)))


@pytest.mark.parametrize(
    ("agent", "base", "reason"),
    [
        ({"test_a": "passed", "test_b": "failed", "test_c": "passed"}, {"test_b": "passed"}, "tests_fail"),
        # what was removed did not end at all
        ({}, {"test_a": "passed", "test_b": "passed", "test_c": "passed"}, "tests_fail"),
        ({}, {"test_a": "passed"}, "not_gradable"),
    ],
)
def test_tests_that_passed_before_must_pass(agent, base, reason, monkeypatch):
    monkeypatch.setattr(places, "for_tests", lambda arm: arm)
    grading = Grading(TASK, b"", "")
    grading._harness = EndedHarness({"agent": agent, "base": base})
    with pytest.raises(Refused) as refused:
        grading._require_tests({arm: arm for arm in ARMS})
    assert refused.value.reason == reason
