"""A build with coverage is a build; a survey of it is one more survey, within the time that is left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import cast

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.building.suites.questions import Coverage, Survey, SurveyedBenchmark
from formulacode_dagster.measuring.measurement.arms import Arms
from formulacode_dagster.measuring.measurement.changed_code import changed_code
from formulacode_dagster.measuring.measurement.choosing import Chooser
from formulacode_dagster.measuring.measurement.compiled_lines import ANY_UNIT, CompiledLines
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.patch import changed_files
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.relevance import BenchmarkCandidate
from formulacode_dagster.measuring.measurement.surveyed import Surveyed
from formulacode_dagster.measuring.measurement.time_budget import SURVEY_SHARE, TimeBudget
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def arms_of(client: object, reinstall: Callable[..., Completed]) -> Arms:
    """Arms whose copies have *client* as their harness."""
    copy = SimpleNamespace(reinstall=reinstall), client
    made = SimpleNamespace(copied=lambda _: nullcontext(copy), linkers={Arm.BASE: "/linkers"})
    return cast(Arms, made)


def test_a_build_with_coverage_takes_the_turn_of_builds(clock: Clock) -> None:
    turns: list[str] = []

    @contextmanager
    def turn():
        clock.now += 3600
        turns.append("taken")
        yield
        turns.append("over")

    def reinstall(**_):
        assert turns == ["taken"]
        clock.now += 40
        return Completed(0, b"", b"", 40.0)

    budget, counting = TimeBudget(100.0, clock=clock), Counting()
    said: list[str] = []
    known = (arms_of(counting, reinstall), b"", ResourceLimits(), SamplingPlan(), budget, said.append, turn)
    with CompiledLines(*known) as compiled:
        compiled._build(Arm.BASE, {"fast.c": frozenset({1})})
    assert turns == ["taken", "over"]
    assert counting.instrumented == [({"fast.*"}, "/linkers")]
    assert (budget.spent, budget.built) == (0.0, 40.0)


C = """diff --git a/pkg/fast.c b/pkg/fast.c
--- a/pkg/fast.c
+++ b/pkg/fast.c
@@ -1 +1 @@
-int total;
+long total;
"""
HEADER = C.replace("fast.c", "fast.h")
SIGNATURES = (
    C.replace("fast.c", "fast.pxd")
    .replace("int total;", "cdef int f(double[:] a) nogil")
    .replace("@@ -1 +1 @@", "@@ -1 +1,3 @@")
    .replace("+long total;", "+cimport numpy as cnp\n+cdef int f(double[:] a,\n+           int b=*) noexcept nogil")
)
TYPE = C.replace("fast.c", "fast.pxd").replace("+long total;", "+ctypedef long total")
INLINE = C.replace("fast.c", "fast.pxd").replace("int total;", "    return 1").replace("long total;", "    return 2")
PYTHON = """diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1,2 +1,2 @@
 def subtotal(n):
-    return sum(range(n))
+    return n
"""
BEFORE, AFTER = b"def subtotal(n):\n    return sum(range(n))\n", b"def subtotal(n):\n    return n\n"
NAMES = [f"bench.time_{letter}" for letter in "abcde"]
HIT = {"pkg/fast.c": (1,)}


def ran(name, outcome="ran", lines=None):
    return SurveyedBenchmark(
        name=name,
        module="benchmarks.bench",
        owner="",
        attribute=name.partition(".")[2],
        index=0,
        timeout=10,
        cache_folder="",
        outcome=outcome,
        traceable=outcome == "ran",
        lines=lines or {},
    )


class Uninstrumented:
    """A session in which each benchmark that is not ruled out runs, the first *fits* if given."""

    core_count = 1

    def __init__(self, fits=5):
        self.fits, self.asked = fits, []

    def survey(self, *, selection, lines, **_):
        ruled_out, only = selection.ruled_out, selection.only
        self.asked.append((only, dict(lines)))
        wanted = [name for name in NAMES if only is None or name in only]
        left = [name for name in wanted if name not in ruled_out]
        outcomes = dict.fromkeys(left[: self.fits], "ran") | dict.fromkeys(left[self.fits :], "untraced")
        return Survey(
            benchmarks=[ran(name, outcomes.get(name, "ruled_out")) for name in wanted], lost={}, extensions=()
        )


class Counting:
    """A session built with coverage, in which the first two that are asked for run, and *hits* execute the change."""

    def __init__(self, *hits, seen=("pkg/fast.c",)):
        self.hits, self.seen, self.asked, self.instrumented = hits, seen, [], []

    def instrument(self, units, *, linkers=""):
        self.instrumented.append((set(units), linkers))
        return Coverage(variables={}, data="/data")

    def restore(self):
        pass

    def survey(self, **asked):
        self.asked.append(asked)
        told = [
            ran(name, "ran" if place < 2 else "untraced", HIT if name in self.hits and place < 2 else {})
            for place, name in enumerate(asked["selection"].only)
        ]
        return Survey(benchmarks=told, lost={}, extensions=(), seen=self.seen)


class Overlaid(Counting):
    """A coverage session in which each suite has one benchmark, which executes the change; that of the base is last."""

    suite = None

    def write(self, files):
        self.suite = files

    def restore(self):
        self.suite = None

    def survey(self, *, selection, **_):
        name = NAMES[-1] if self.suite is None else NAMES[0]
        return Survey(
            benchmarks=[ran(each, lines=HIT) for each in selection.only if each == name],
            lost={},
            extensions=(),
            seen=("pkg/fast.c",),
        )


def test_the_base_suite_is_surveyed_with_coverage_after_another_suite_was_copied(clock):
    files = changed_files(C.encode())
    changed = changed_code(files, base={}, oracle={}, benchmark_dir="benchmarks")
    budget, session = TimeBudget(600.0, clock=clock), Overlaid()
    compiled = CompiledLines(None, b"", ResourceLimits(), SamplingPlan(), budget, Log(None))
    compiled._builds = dict.fromkeys((Arm.BASE, Arm.ORACLE), (session, session.instrument(())))
    later = SuiteFiles("later", {"benchmarks/bench.py": b""})
    for name, suite in ((NAMES[-1], BASE_SUITE), (NAMES[0], later), (NAMES[-1], BASE_SUITE)):
        candidate = BenchmarkCandidate(dict.fromkeys((Arm.BASE, Arm.ORACLE), ran(name)), None, "not traced")
        (settled,) = compiled.settle([candidate], changed, suite)
        assert settled.executes_change is True


@pytest.mark.parametrize(
    ("patch", "expected"),
    [(C + SIGNATURES, False), (SIGNATURES, None), (C + TYPE, None), (C + INLINE, None), (C + HEADER, None)],
    ids=["signatures with C", "signatures", "a type with C", "code with C", "a header with C"],
)
def test_changed_signatures_hide_nothing_where_a_source_is_covered(clock, patch, expected):
    changed = changed_code(changed_files(patch.encode()), base={}, oracle={}, benchmark_dir="benchmarks")
    session = Counting(seen=("pkg/fast.c",) if C in patch else ())
    budget = TimeBudget(600.0, clock=clock)
    arms = arms_of(session, lambda **_: Completed(0, b"", b"", 1.0))
    compiled = CompiledLines(arms, patch.encode(), ResourceLimits(), SamplingPlan(), budget, Log(None))
    candidate = BenchmarkCandidate(dict.fromkeys((Arm.BASE, Arm.ORACLE), ran(NAMES[0])), None, "not traced")
    (settled,) = compiled.settle([candidate], changed, BASE_SUITE)
    assert settled.executes_change is expected
    # for signatures alone no source would be compiled with coverage
    units = {unit for asked, _ in session.instrumented for unit in asked}
    assert units == ({"fast.*"} if patch == C + SIGNATURES else set() if patch == SIGNATURES else set(ANY_UNIT))


@pytest.fixture
def select():
    """The selection of `Chooser` from the base's suite: `select(surveyed, counting)`, with *counting* on both arms."""

    def run(surveyed, counting, *, patch=C, fits=5, seconds=600.0, used=0.0, choosing=nullcontext):
        arms = arms_of(counting, lambda **_: Completed(0, b"", b"", 1.0))
        plan, log, limits = SamplingPlan(), Log(None), ResourceLimits()
        clock = Clock()
        budget = TimeBudget(seconds, clock=clock)
        clock.now = used
        run.session = Uninstrumented(fits)
        remotes = dict.fromkeys(Arm, run.session)
        sources = {Arm.BASE: {"pkg/core.py": BEFORE}, Arm.ORACLE: {"pkg/core.py": AFTER}}
        with CompiledLines(arms, b"", limits, plan, budget, log, choosing=choosing) as compiled:
            files = changed_files(patch.encode())
            given = (compiled, surveyed, "benchmarks", limits, plan, budget, log)
            return Chooser(remotes, files, sources, *given)._select(BASE_SUITE)

    return run


def test_a_survey_with_coverage_runs_while_nothing_is_timed(select):
    calls, counting = [], Counting("bench.time_a")
    survey = counting.survey
    counting.survey = lambda **asked: calls.append("survey") or survey(**asked)

    @contextmanager
    def choosing():
        calls.append("in a turn")
        yield
        calls.append("out")

    with suppress(ItemFailure):
        select(Surveyed(), counting, choosing=choosing)
    assert calls[:3] == ["in a turn", "survey", "out"]
    assert calls == calls[:3] * (len(calls) // 3)


def test_surveys_without_time_go_on_until_half_of_the_time_is_used(select):
    kept = {}
    counting = Counting(NAMES[4])
    choice = select(Surveyed({}, kept.__setitem__), counting)
    assert [candidate.name for candidate in choice.candidates] == [NAMES[4]]
    assert [asked["selection"].only for asked in counting.asked] == [NAMES, NAMES, NAMES[2:], NAMES[2:], NAMES[4:]]
    assert kept == {"base": set(NAMES[:4])}


def test_a_later_attempt_continues_surveys_without_time(select):
    kept = {}
    for ruled_out, asked_for in ((NAMES[:2], NAMES), (NAMES[:4], NAMES[2:])):
        counting = Counting()
        with pytest.raises(ItemFailure) as failure:
            select(Surveyed(dict(kept), kept.__setitem__), counting, used=301.0)
        assert failure.value.kind == "survey_unfinished"
        assert f"no time to run {5 - len(ruled_out)} of 5 benchmarks" in str(failure.value)
        assert kept == {"base": set(ruled_out)}
        assert [asked["selection"].only for asked in counting.asked] == [asked_for, asked_for]
    choice = select(Surveyed(kept), Counting(NAMES[4]))
    assert [candidate.name for candidate in choice.candidates] == [NAMES[4]]


def test_code_executed_on_the_base_is_not_surveyed_on_the_oracle(select):
    counting = Counting(NAMES[0])
    choice = select(Surveyed(), counting)
    assert [asked["selection"].only for asked in counting.asked] == [NAMES, NAMES[1:]]
    assert [candidate.name for candidate in choice.candidates] == [NAMES[0]]


def test_code_known_only_by_compiled_lines_is_tested_for_state(select):
    choice = select(Surveyed(), Counting(NAMES[0]), patch=C + PYTHON)
    assert [candidate.name for candidate in choice.candidates] == [NAMES[0]]
    whole, further = select.session.asked[:2], select.session.asked[2:]
    assert all(only is None and lines for only, lines in whole)
    # base and oracle, by no line, then the control
    assert [(only, bool(lines)) for only, lines in further] == [([NAMES[0]], False)] * 2 + [([NAMES[0]], True)]


def test_a_coverage_survey_takes_a_share_of_time_relevant_ones_first(select):
    counting = Counting(NAMES[0])
    select(Surveyed(), counting, seconds=40.0, patch=C + PYTHON)
    assert {asked["budget"] for asked in counting.asked} == {SURVEY_SHARE * 40}
    assert {asked["selection"].names for asked in counting.asked} == {frozenset({"subtotal"})}


def test_untraced_code_is_not_ruled_out_if_python_changed_too(select):
    kept = {}
    with pytest.raises(ItemFailure) as failure:
        select(Surveyed({}, kept.__setitem__), Counting(), patch=C + PYTHON, fits=1, used=301.0)
    assert failure.value.kind == "survey_unfinished"
    assert kept == {"base": {NAMES[0]}}


def test_where_only_compiled_code_changed_its_lines_tell_of_all_that_ran(select):
    kept = {}
    with pytest.raises(ItemFailure):
        select(Surveyed({}, kept.__setitem__), Counting(), fits=1, used=301.0)
    assert kept == {"base": set(NAMES[:2])}
