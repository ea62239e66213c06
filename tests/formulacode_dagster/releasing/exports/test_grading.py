"""The grader's judgement of an agent's results: each refusal, without the container in which attacks are run."""

from __future__ import annotations

import contextlib
import math
from types import SimpleNamespace

import pytest

from formulacode_dagster.releasing.exports.grader import grading as grader
from formulacode_dagster.releasing.exports.grader import places
from formulacode_dagster.releasing.exports.grader.grading import Grading, Refused
from formulacode_dagster.releasing.exports.grader.harness_session import EndedTests
from formulacode_dagster.releasing.exports.grader.judging import ArmVerdict, Samples
from formulacode_dagster.releasing.exports.grader.places import ARMS, ArmFailedError
from formulacode_dagster.releasing.exports.grader.running import ProcessesRemainError
from formulacode_dagster.releasing.exports.grader.sampling import ArmSampler, Clocked

NAME = "bench.time"
TASK = {
    "task_id": "acme__shapes-5",
    "speedup": 20.0,
    "environment": {},
    "limits": {"benchmark_seconds": 60},
    "is_time": True,
    "package_root": "",
    "pass_to_pass": ["test_a", "test_b", "test_c"],
    "tests_seconds": 60,
    "rule": {"min_speedup": 1.05},
}


def judged(speedup):
    return ArmVerdict("faster", speedup, speedup, speedup, 0.01, 1.0, {NAME: speedup})


def clocked(**told):
    """A second of calls behind setups of a millisecond, by all clocks, unless *told* differs."""
    answer = {"is_clocked": True, "accounted": 1.1, "setups": 0.1, "counted": 1.0, "batches": 100.0}
    answer |= {"wall": 1.12, "cpu": 1.11, "measured": 0.9, "calls": 100.0, "value": 0.0085} | told
    found = Clocked()
    found.add({name: value for name, value in answer.items() if value is not None})
    return found


class SampledWork:
    """Samples of an honest agent's code that is four times as fast, unless *told* differs."""

    def __init__(self, **told):
        seconds = {"base": 0.08, "control": 0.08, "oracle": 0.02, "agent": 0.02} | told.get("first", {})
        self.tampered = {arm: told.get("tampered", {}).get(arm, set()) for arm in ARMS}
        self.first_calls = {arm: {NAME: [seconds[arm]] * 3} for arm in ARMS}
        self.spent = {arm: [told.get("cpu", {}).get(arm, 0.5)] for arm in ARMS}
        self.prepared = {arm: [told.get("prepared", {}).get(arm, 0.01)] * 9 for arm in ARMS}
        self._prepared_once = {arm: told.get("prepared_once", {}).get(arm, 0.01) for arm in ARMS}
        self._scatter = told.get("scatter", 0.0)
        self.saved = seconds["base"] - seconds["agent"]
        self.rounds_once = 0
        self.clocked = {arm: clocked(**told.get("clocked", {}).get(arm, {})) for arm in ARMS}
        self.memory = {arm: [told.get("memory", {}).get(arm, 0.95)] for arm in ARMS}
        self.differing = {NAME: told.get("differing", [])}
        self.proven = {NAME: 5}
        self.late = told.get("late", set())

    @property
    def prepared_once(self):
        rounds = {arm: [seconds] * self.rounds_once for arm, seconds in self._prepared_once.items()}
        rounds["agent"] = [each + self._scatter * (-1) ** place for place, each in enumerate(rounds["agent"])]
        return rounds

    def call_once(self, rounds):
        self.rounds_once += rounds
        self.tampered["agent"] = self.tampered["agent"] | self.late

    def judged(self, arm):
        return judged(4.0)


class NamedPlace(str):
    """An arm that is its name."""

    @property
    def arm(self):
        return str(self)


class EndedHarness:
    """A harness with the tests' results *told* for each arm; those sabotaged in their copy fail unless *unnoticed*."""

    def __init__(self, told, unnoticed=(), tools=None):
        self._told, self._unnoticed, self._tools = told, unnoticed, tools or {}

    def working_on(self, _arm):
        return contextlib.nullcontext()

    def tests(self, arm, sabotaged, names, seconds):
        is_noticed = arm not in self._unnoticed
        outcomes = {
            name: "failed" if name in sabotaged and is_noticed else outcome
            for name, outcome in self._told[arm].items()
            if name in names
        }
        return EndedTests(outcomes, self._tools.get(arm, {"_pytest.runner.runtestprotocol": "1"}))


def require_honest(**told):
    return Grading(TASK, b"", "")._require_honest(SampledWork(**told), judged(4.0))


@pytest.mark.parametrize(("builds", "rounds"), [(0.0, "12 rounds"), (11.0, "12 rounds of 11 builds")])
def test_what_was_measured_is_the_reason_of_other_verdicts(builds, rounds):
    grading = Grading(TASK, b"", "")
    grading._metrics.update(rounds=12.0, builds=builds, oracle_speedup=1.07)
    said = grading._measured(judged(1.04)._replace(low=0.99, high=1.09, control_speedup=1.01))
    assert said == f"1.04× (95 % 0.99 to 1.09) in {rounds}, the author's patch 1.07×, a second base 1.01×"


def test_honest_work_counts_as_it_was_measured():
    assert require_honest() == pytest.approx(math.log(4.0))


def test_first_calls_are_what_counts_where_they_gain_less():
    assert require_honest(first={"agent": 0.04}) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("arm", "seconds"),
    [
        pytest.param("agent", [0.05, 0.08, 0.08], id="one-is-fast"),
        pytest.param("base", [0.13, 0.14, 0.13], id="the-base-is-slow-and-the-control-is-not"),
    ],
)
def test_first_calls_that_are_faster_by_chance_count_for_nothing(arm, seconds):
    work = SampledWork(first={"agent": 0.08})
    work.first_calls[arm] = {NAME: seconds}
    with pytest.raises(Refused) as refused:
        Grading(TASK, b"", "")._require_honest(work, judged(4.0))
    assert refused.value.reason == "only_called_again"


def test_first_calls_count_where_later_ones_gain_much_more():
    work = SampledWork(first={"oracle": 0.01, "agent": 0.08})
    work.judged = lambda _: judged(10_000.0)
    with pytest.raises(Refused) as refused:
        Grading(TASK, b"", "")._require_honest(work, judged(100.0))
    assert refused.value.reason == "only_called_again"


@pytest.mark.parametrize(
    ("told", "is_time", "rounds"),
    [({}, True, 5), ({"agent": 0.06}, True, 30), ({"agent": 0.06}, False, 5)],
    ids=["clear", "open", "no-time"],
)
def test_first_calls_are_sampled_until_it_is_known_whether_work_moved(told, is_time, rounds):
    work = SampledWork(prepared_once=told, scatter=0.15 if told else 0.0)
    Grading(TASK | {"is_time": is_time}, b"", "")._require_honest(work, judged(4.0))
    assert work.rounds_once == rounds


def test_no_more_first_calls_are_begun_once_their_time_is_used_up(monkeypatch):
    monkeypatch.setattr(grader, "FIRST_CALL_SECONDS", -1.0)
    work = SampledWork(prepared_once={"agent": 0.06}, scatter=0.15)
    Grading(TASK, b"", "")._require_honest(work, judged(4.0))
    assert work.rounds_once == 5


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"late": {"time.perf_counter"}}, "clocks_changed"),
        ({"first": {"agent": 0.079}}, "only_called_again"),
        ({"prepared": {"agent": 0.06}}, "work_moved"),
        ({"prepared_once": {"agent": 0.06}}, "work_moved"),
        ({"cpu": {"agent": 2.0}}, "clocks_differ"),
        ({"clocked": {"agent": {"wall": 2.5}}}, "clocks_differ"),
        ({"clocked": {"agent": {"cpu": 2.5}}}, "clocks_differ"),
        # the calls are forged, or called setups
        ({"clocked": {"agent": {"counted": 0.1}}}, "clocks_differ"),
        ({"clocked": {"agent": {"counted": 0.1, "setups": 1.0}}}, "clocks_differ"),
        ({"clocked": {"agent": {"value": 0.001}}}, "clocks_differ"),
        ({"clocked": {"agent": {"wall": None}}}, "clocks_differ"),
        ({"clocked": {"agent": {"is_clocked": False}}}, "clocks_differ"),
        ({"memory": {"agent": 1.2}}, "memory_differs"),
        ({"differing": ["", ""]}, "returns_other"),
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
        {"prepared": {"agent": 0.06, "oracle": 0.06}},
        {"cpu": {"agent": 1.4}},
        {"memory": {"agent": 1.2, "base": 1.2}},
        {"clocked": {"agent": {"wall": 2.5}, "base": {"wall": 2.5}}},
        {"clocked": {"agent": {"cpu": 2.5}, "base": {"cpu": 2.5}}},
        # short calls that each have a setup
        {
            "clocked": {
                "agent": {
                    "counted": 0.001,
                    "cpu": 0.103,
                    "wall": 0.11,
                    "accounted": 0.105,
                    "measured": 0.001,
                    "value": 1e-5,
                }
            }
        },
        {"tampered": {"agent": {"time.time"}, "base": {"time.time"}}},
        # a moment of chance
        {"differing": [""]},
    ],
)
def test_what_the_authors_code_does_too_is_no_deceit(told):
    require_honest(**told)


@pytest.mark.parametrize("tampered", [{"time.perf_counter"}, {"timeit.default_timer", "time.thread_time"}])
def test_a_clock_that_was_changed_is_named(tampered):
    with pytest.raises(Refused) as refused:
        Grading(TASK, b"", "")._require_clocks(SampledWork(tampered={"agent": tampered}))
    assert (refused.value.reason, str(refused.value)) == ("clocks_changed", ", ".join(sorted(tampered)))


class UnbuiltSampler:
    """A sampler of compiled code, of which a later build of one arm fails."""

    def __init__(self, arm):
        self._arm = arm

    def take(self):
        sampler = ArmSampler.__new__(ArmSampler)
        sampler._rule, sampler._task = SimpleNamespace(looks=[(5, 0.05)], by_build=True), {"max_seconds": 60}
        sampler.samples = Samples({}, {arm: [] for arm in ARMS})
        sampler._build_anew = self._build
        return sampler.take()

    def _build(self, arm):
        if arm == self._arm:
            raise ArmFailedError("the package does not build")
        return "objects"


def graded(monkeypatch, task=TASK, **replaced):
    """Grade with a single change of the agent's, and methods of Grading *replaced*."""
    methods = {
        "_built": lambda *_: ({}, {}), "_require_tests": lambda *_: None, "_surveyed": lambda *_: ({}, frozenset()),
    } | replaced  # fmt: skip
    for name, method in methods.items():
        monkeypatch.setattr(Grading, name, method)
    for name in ("adopt_orphans", "end_processes", "empty_public"):
        monkeypatch.setattr(grader, name, lambda *_: [])
    monkeypatch.setattr(places, "changes_of", lambda _: ({"pkg/core.py": b"fast"}, []))
    monkeypatch.setattr(places, "seal", lambda: None)
    monkeypatch.setattr(grader.os, "makedirs", lambda _: None)
    monkeypatch.setattr(grader.os, "chmod", lambda *_: None)
    monkeypatch.setattr(grader.shutil, "copy", lambda *_: None)
    report = Grading(task, b"", "").grade()
    return report["reason"], report["metrics"]["reward"], report["detail"]


@pytest.mark.parametrize(("arm", "reason"), [("agent", "does_not_build"), ("oracle", "not_gradable")])
def test_a_build_that_fails_later_is_a_reason_like_the_first(arm, reason, monkeypatch):
    monkeypatch.setattr(grader, "ArmSampler", lambda *_: UnbuiltSampler(arm))
    assert graded(monkeypatch) == (reason, 0.0, f"{arm}: the package does not build")


class EndlessPlace:
    """An arm whose processes do not end, or that cannot start one."""

    python = repository = ""

    def __init__(self, arm, error):
        self.arm, self._error = arm, error

    def run(self, *_, **__):
        raise self._error


@pytest.mark.parametrize(
    ("arm", "error", "reason"),
    [
        ("agent", RecursionError("too deep"), "breaks_grader"),
        ("agent", ProcessesRemainError("sleep"), "processes_remain"),
        ("base", ProcessesRemainError("sleep"), "not_gradable"),
        ("base", RecursionError("too deep"), None),
    ],
)
def test_an_agent_cannot_choose_not_to_be_graded(arm, error, reason, monkeypatch):
    """A grading without a report would count for nothing: what fails is the agent's, but on other arms."""

    def asked(self, *_):
        self._harness.survey(EndlessPlace(arm, error), ["bench.time"])

    task = {**TASK, "survey_seconds": 60, "benchmark_dir": "benchmarks/"}
    with pytest.raises(RecursionError) if reason is None else contextlib.nullcontext():
        assert graded(monkeypatch, task, _surveyed=asked)[:2] == (reason, 0.0)


def test_answers_that_break_the_grader_get_nothing(monkeypatch):
    def answered(*_):
        raise ZeroDivisionError("division by zero")

    assert graded(monkeypatch, _surveyed=answered) == ("breaks_grader", 0.0, "ZeroDivisionError: division by zero")


def test_the_agent_is_not_at_fault_before_its_own_build(monkeypatch):
    def made(arm, *_):
        raise ZeroDivisionError(arm)

    monkeypatch.setattr(places, "make", made)
    with pytest.raises(ZeroDivisionError, match="base"):
        graded(monkeypatch, _built=Grading._built)


def test_a_copy_of_the_base_that_fails_is_no_fault_of_the_agent(monkeypatch):
    def copied(place, *_):
        raise OSError(place.arm)

    def asked(self, *_):
        self._tested(NamedPlace("base"), ["test_a"])

    monkeypatch.setattr(places, "for_tests", copied)
    with pytest.raises(OSError, match="base"):
        graded(monkeypatch, {**TASK, "package_root": ""}, _surveyed=asked)


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
    monkeypatch.setattr(places, "for_tests", lambda _, sabotaged: sabotaged)
    grading = Grading(TASK, b"", "")
    grading._harness = EndedHarness({"agent": agent, "base": base})
    with pytest.raises(Refused) as refused:
        grading._require_tests({arm: NamedPlace(arm) for arm in ARMS})
    assert refused.value.reason == reason


PASSED = dict.fromkeys(TASK["pass_to_pass"], "passed")


@pytest.mark.parametrize(
    "told",
    [
        {"unnoticed": {"agent"}},
        {
            "tools": {
                "agent": {"_pytest.python.Function.runtest": "2"},
                "base": {"_pytest.python.Function.runtest": "1"},
            }
        },
        # its process ended before it was asked, or a module hid
        {"tools": {"agent": {}}},
        {"tools": {"agent": {"pluggy.HookCaller.__call__": "1"}}},
    ],
)
def test_tests_that_the_agents_code_judges_are_refused(told, monkeypatch):
    monkeypatch.setattr(places, "for_tests", lambda _, sabotaged: sabotaged)
    grading = Grading(TASK, b"", "")
    grading._harness = EndedHarness({"agent": PASSED, "base": PASSED}, **told)
    with pytest.raises(Refused) as refused:
        grading._require_tests({arm: NamedPlace(arm) for arm in ARMS})
    assert refused.value.reason == "tests_changed"


def test_code_that_no_test_needs_may_be_missing(monkeypatch):
    monkeypatch.setattr(places, "for_tests", lambda _, sabotaged: sabotaged)
    grading = Grading(TASK, b"", "")
    agent = {"_pytest.runner.runtestprotocol": "1"}
    tools = {"agent": agent, "base": {**agent, "numpy.testing.assert_equal": "1", "unittest.mock.call": "1"}}
    grading._harness = EndedHarness({"agent": PASSED, "base": PASSED}, tools=tools)
    grading._require_tests({arm: NamedPlace(arm) for arm in ARMS})
    assert grading._metrics["tests_failed"] == 0.0


@pytest.mark.parametrize(("again", "reason"), [("passed", ""), ("failed", "tests_fail")])
def test_tests_that_fail_with_a_sabotaged_one_run_once_more(again, reason, monkeypatch):
    """They share its code; one that passes on the base while it is sabotaged does not, and fails at once."""
    names = [f"tests.py::test_cases[{n}]" for n in range(9)]
    asked = []

    class Harness(EndedHarness):
        def tests(self, arm, sabotaged, some, seconds):
            asked.append((arm, len(some), len(sabotaged)))
            outcome = "failed" if sabotaged else again if arm == "agent" else "passed"
            return EndedTests(dict.fromkeys(some, outcome), {"pluggy.call": "1"})

    monkeypatch.setattr(places, "for_tests", lambda _, sabotaged: sabotaged)
    grading = Grading({**TASK, "pass_to_pass": names}, b"", "")
    grading._harness = Harness({})
    with pytest.raises(Refused) if reason else contextlib.nullcontext() as refused:
        grading._require_tests({arm: NamedPlace(arm) for arm in ARMS})
    assert not reason or refused.value.reason == reason
    assert asked == [("agent", 9, 3), ("base", 9, 3), ("agent", 9, 0), *([("base", 9, 0)] if reason else [])]


def test_tests_that_cannot_be_made_to_fail_say_nothing(monkeypatch):
    monkeypatch.setattr(places, "for_tests", lambda _, sabotaged: sabotaged)
    grading = Grading(TASK, b"", "")
    grading._harness = EndedHarness({"agent": PASSED, "base": PASSED}, unnoticed={"agent", "base"})
    grading._require_tests({arm: NamedPlace(arm) for arm in ARMS})
    assert grading._metrics["tests_failed"] == 0.0
