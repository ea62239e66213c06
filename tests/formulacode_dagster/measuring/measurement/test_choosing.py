"""Suites that are tried, and the state of the checkouts."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, NO_SUITE, SuiteFiles
from formulacode_dagster.building.suites.questions import SampledStacks, Survey, SurveyedBenchmark
from formulacode_dagster.measuring.measurement.changed_code import ChangedCode, TracedFunction
from formulacode_dagster.measuring.measurement.choosing import Choice, Chooser
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.patch import changed_files
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.relevance import BenchmarkCandidate, UntimedCounts
from formulacode_dagster.measuring.measurement.surveyed import Surveyed
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, Metric, StackTime
from formulacode_dagster.models.reasons import FailureKind

BEFORE, AFTER = b"def total(n):\n    return sum(range(n))\n", b"def total(n):\n    return n\n"
PATCH = b"""diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1,2 +1,2 @@
 def total(n):
-    return sum(range(n))
+    return n
"""
ONE, OTHER = (SuiteFiles(name, {f"benchmarks/{name}.py": b""}) for name in ("one", "other"))


class Listening:
    """A session whose suites hold no benchmark, and load `pkg.core` as a compiled module."""

    core_count = 1

    def __init__(self):
        self.asked = []

    def write(self, files):
        self.asked.append(("write", *files))

    def restore(self):
        self.asked.append(("restore",))

    def survey(self, **_):
        self.asked.append(("survey",))
        return Survey(benchmarks=(), lost={}, extensions=("pkg.core",))


class Suite(Listening):
    """A session whose suites hold one benchmark in each file, and none of them executes the change."""

    def __init__(self):
        super().__init__()
        self.files = {"benchmarks/one.py": b"", "benchmarks/base.py": b""}

    def read(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}

    def write(self, files):
        super().write(files)
        self.files = dict(files)

    def survey(self, selection, **_):
        ruled_out = selection.ruled_out
        names = sorted(path.removeprefix("benchmarks/").removesuffix(".py") for path in self.files)
        if selection.only is not None:
            self.asked.append(("import", *selection.only))
            return Survey(benchmarks=(), lost={}, extensions=())
        self.asked.append(("survey", *sorted(ruled_out)))
        return Survey(
            benchmarks=tuple(surveyed(name, f"{name}.time_it" in ruled_out) for name in names), lost={}, extensions=()
        )


def surveyed(module, is_ruled_out):
    return SurveyedBenchmark(
        name=f"{module}.time_it",
        module=module,
        owner="",
        attribute="time_it",
        index=0,
        timeout=1.0,
        cache_folder="",
        outcome="ruled_out" if is_ruled_out else "ran",
        traceable=True,
    )


class Hurried(Listening):
    """A session in which two benchmarks execute the change, one does not, and for one there is no time."""

    def __init__(self, **inside):
        super().__init__()
        self.inside = inside or {"a": 1.0, "b": 1.0}
        """Share of their time in the change."""

    def stacks(self, asked, *, within, **_):
        assert within == {"pkg/core.py": [(1, 2)]}
        return {
            one.name: SampledStacks(
                elsewhere=0,
                frames=(),
                stacks=(StackTime(frames=(), seconds=1.0),),
                calls=1,
                seconds=1,
                inside=self.inside[one.module],
            )
            for one in asked
        }

    def survey(self, *, selection, **_):
        lines = {"pkg/core.py": (2,)}
        hits = [surveyed(name, is_ruled_out=False).model_copy(update={"lines": lines}) for name in ("a", "b")]
        late = surveyed("d", is_ruled_out=False).model_copy(update={"outcome": "untraced"})
        number, shares = selection.share
        found = (*hits, surveyed("c", is_ruled_out=False), late)[number::shares]
        return Survey(benchmarks=found, lost={}, extensions=())


class Nothing:
    """No build with coverage."""

    def settle(self, candidates, _changed, _suite):
        return list(candidates)


def chooser_of(remote, log, plan, turn=nullcontext):
    """A chooser in whose task *remote* stands for all arms."""
    sources = {Arm.BASE: {"pkg/core.py": BEFORE}, Arm.ORACLE: {"pkg/core.py": AFTER}}
    remotes, limits, budget = dict.fromkeys(Arm, remote), ResourceLimits(), TimeBudget(plan.max_seconds)
    given = (Nothing(), Surveyed(), "benchmarks", limits, plan, budget, log)
    return Chooser(remotes, changed_files(PATCH), sources, *given, turn=turn)


@pytest.fixture
def chosen():
    """`chosen(suite, others)`: the requests to each arm if none of them reaches the change."""

    def run(suite, others, remote=None, turn=nullcontext):
        remote = remote or Listening()
        with pytest.raises((ItemFailure, Rejection)):
            chooser_of(remote, Log(None), SamplingPlan(), turn).choose(suite, others)
        return remote.asked

    return run


def test_a_suite_is_gone_before_the_next_is_looked_for(chosen):
    asked = []

    def others(_changed):
        asked.append("one")
        yield ONE
        asked.append("other")
        yield OTHER

    calls = chosen(BASE_SUITE, others)
    assert asked == ["one", "other"]
    laid = [call for call in dict.fromkeys(calls) if call[0] == "write"]
    assert laid == [("write", "benchmarks/one.py"), ("write", "benchmarks/other.py")]
    between = calls[calls.index(laid[0]) : calls.index(laid[1])]
    assert between[-3:] == [("restore",)] * 3


def test_a_benchmark_that_two_suites_share_runs_in_the_first_alone(chosen):
    later = SuiteFiles("later", {"benchmarks/one.py": b"", "benchmarks/base.py": b"pass", "benchmarks/new.py": b""})
    newest = SuiteFiles("newest", {**later.files, "benchmarks/new.py": b"pass"})
    calls = chosen(BASE_SUITE, lambda _: [later, newest], Suite())
    surveys = [call for call in calls if call[0] == "survey"]
    assert surveys == [("survey",), ("survey", "one.time_it"), ("survey", "base.time_it", "one.time_it")]
    assert [call for call in calls if call[0] == "import"] == [("import",)] * 3, "no benchmark reaches the change"


def test_benchmarks_run_and_others_are_looked_for_while_nothing_is_timed(chosen):
    def others(_changed):
        asked.append(("look",))
        yield ONE

    @contextmanager
    def turn():
        asked.append(("in a turn",))
        yield
        asked.append(("out",))

    remote = Listening()
    asked = remote.asked
    chosen(BASE_SUITE, others, remote, turn)
    places = [place for place, call in enumerate(asked) if call[0] in ("look", "survey")]
    assert len(places) == 5
    assert {asked[place - 1] for place in places} == {("in a turn",)}
    assert {asked[place + 1] for place in places} == {("out",)}


def test_the_first_suite_is_not_surveyed_again_under_another_name(chosen):
    first = SuiteFiles("merge commit", ONE.files)
    once = chosen(first, lambda _: ())
    assert chosen(first, lambda _: [ONE]) == once


def test_compiled_python_of_a_suite_is_reported_to_other_searches(chosen):
    told = []

    def others(changed):
        told.append(changed)
        return ()

    chosen(BASE_SUITE, others)
    chosen(NO_SUITE, others)
    known, unknown = told
    assert [change.path for change in known.compiled] == ["pkg/core.py"]
    assert not unknown.compiled
    assert unknown.base == {"pkg/core.py": frozenset({2})}


class Meeting(Hurried):
    """A session on two cores, whose first surveys wait for one another."""

    core_count = 2

    def __init__(self):
        super().__init__()
        self.barrier = threading.Barrier(2, timeout=20)

    def survey(self, *, selection, **asked):
        if selection.only is None:
            self.barrier.wait()
        return super().survey(selection=selection, **asked)


def surveys_logged(remote, patch=PATCH, after=AFTER):
    log = Log(None)
    sources = {Arm.BASE: {"pkg/core.py": BEFORE}, Arm.ORACLE: {"pkg/core.py": after}}
    chooser = chooser_of(remote, log, SamplingPlan())
    replace(chooser, files=changed_files(patch), sources=sources).choose(BASE_SUITE, lambda _: ())
    return [line.removeprefix("running ") for line in log.lines if " once on the " in line]


def test_only_what_enters_the_change_on_the_base_runs_with_the_patch():
    assert surveys_logged(Hurried()) == ["every benchmark once on the base", "2 benchmarks once on the oracle"]


def test_with_two_cores_base_and_control_share_the_benchmarks():
    logged = surveys_logged(Meeting())
    assert logged == ["every benchmark once on the base or the control", "2 benchmarks once on the oracle"]


class Compiling(Listening):
    """A session whose suites load a compiled module of the change; it notes the lines that are traced."""

    def survey(self, lines, **_):
        self.asked.append(lines)
        return Survey(benchmarks=(), lost={}, extensions=("pkg.core",))


def test_entries_are_traced_until_the_change_is_known_to_be_compiled():
    before, after = (b"def total(n):\n    n += 0\n    return %s\n" % value for value in (b"sum(range(n))", b"n"))
    patch = PATCH.replace(b"-1,2 +1,2 @@\n def total(n):\n", b"-1,3 +1,3 @@\n def total(n):\n     n += 0\n")
    remote = Compiling()
    sources = {Arm.BASE: {"pkg/core.py": before}, Arm.ORACLE: {"pkg/core.py": after}}
    chooser = replace(chooser_of(remote, Log(None), SamplingPlan()), files=changed_files(patch), sources=sources)
    with pytest.raises(ItemFailure):
        chooser.choose(BASE_SUITE, lambda _: [ONE])
    assert [lines["pkg/core.py"] for lines in remote.asked if isinstance(lines, dict)] == [{2, 3}, {3}, {3}, {3}]


CONSTANT = PATCH.replace(b"-1,2 +1,2 @@\n", b"-1,2 +1,3 @@\n+LIMIT = 10\n")


@pytest.mark.parametrize(
    ("remote", "surveys"),
    [
        (Meeting, ["every benchmark once on the base and the oracle"]),
        (Hurried, ["every benchmark once on the base", "every benchmark once on the oracle"]),
    ],
)
def test_both_sides_run_all_where_the_base_does_not_show_what_reaches_the_change(remote, surveys):
    assert surveys_logged(remote(), CONSTANT, b"LIMIT = 10\n" + AFTER) == surveys


def test_the_log_and_the_choice_tell_what_was_left_out():
    log = Log(None)
    choice = chooser_of(Hurried(), log, SamplingPlan(max_benchmarks=1)).choose(BASE_SUITE, lambda _: ())
    assert (len(choice.candidates), choice.left_out) == (1, UntimedCounts(unsurveyed=1, undrawn=1))
    told = "left out: 1 that there was no time to run once, 1 relevant ones that were not drawn"
    assert log.lines[-1] == f"1 of 4 benchmarks are timed; {told}"


def test_benchmarks_that_spend_hardly_any_time_in_the_change_are_not_timed():
    log = Log(None)
    choice = chooser_of(Hurried(a=0.02, b=0.5), log, SamplingPlan()).choose(BASE_SUITE, lambda _: ())
    assert [(each.name, each.time_in_change) for each in choice.candidates] == [("b.time_it", 0.5)]
    assert choice.left_out == UntimedCounts(unsurveyed=1, weak=1)
    assert "1 that spend hardly any time in the change" in log.lines[-1]


class Aiming(Hurried):
    """A session with a suite in which all spend hardly any time in the change, and another that may be better."""

    def __init__(self, other):
        super().__init__(a=0.01, b=0.0, e=other)
        self.other = False

    def read(self, _files):
        return {}

    def write(self, files):
        super().write(files)
        self.other = "benchmarks/other.py" in files

    def survey(self, **asked):
        first = super().survey(**asked)
        if not self.other:
            return first
        hit = surveyed("e", is_ruled_out=False).model_copy(update={"lines": {"pkg/core.py": (2,)}})
        return Survey(benchmarks=(hit,), lost={}, extensions=())


def test_a_suite_that_is_aimed_better_is_looked_for():
    log = Log(None)
    choice = chooser_of(Aiming(0.9), log, SamplingPlan()).choose(BASE_SUITE, lambda _: [OTHER])
    assert (choice.suite, [each.name for each in choice.candidates], choice.is_weak) == (OTHER, ["e.time_it"], False)
    assert any("less than 3% of their time in it" in line for line in log.lines)


def test_without_one_the_first_is_taken_again():
    remote, log = Aiming(0.02), Log(None)
    choice = chooser_of(remote, log, SamplingPlan()).choose(ONE, lambda _: [OTHER])
    assert (choice.suite, len(choice.candidates), choice.is_weak) == (ONE, 2, True)
    assert remote.asked[-3:] == [("write", "benchmarks/one.py")] * 3
    assert log.lines[-1] == "nothing is aimed better than the suite of the one"


THREE = b"def total(n):\n    return %d\n\n\ndef mean(n):\n    return %d\n\n\ndef least(n):\n    return %d\n"
PATCH_OF_THREE = b"""diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -2 +2 @@
-    return 1
+    return 4
@@ -6 +6 @@
-    return 2
+    return 5
@@ -10 +10 @@
-    return 3
+    return 6
"""


class Reaching(Listening):
    """A session whose suites hold one benchmark each, which executes the lines of the change at *reached*."""

    def __init__(self, **reached):
        super().__init__()
        self.reached, self.suite = reached, "base"

    def read(self, _files):
        return {}

    def restore(self):
        super().restore()
        self.suite = "base"

    def write(self, files):
        super().write(files)
        (self.suite,) = (path.removeprefix("benchmarks/").removesuffix(".py") for path in files)

    def survey(self, **_):
        lines = {"pkg/core.py": self.reached[self.suite]}
        hit = surveyed(self.suite, is_ruled_out=False).model_copy(update={"lines": lines})
        return Survey(benchmarks=(hit,), lost={}, extensions=())

    def stacks(self, asked, **_):
        return {}


def chosen_of_three(remote, budget):
    sources = {Arm.BASE: {"pkg/core.py": THREE % (1, 2, 3)}, Arm.ORACLE: {"pkg/core.py": THREE % (4, 5, 6)}}
    given = (Nothing(), Surveyed(), "benchmarks", ResourceLimits(), SamplingPlan(), budget, Log(None))
    chooser = Chooser(dict.fromkeys(Arm, remote), changed_files(PATCH_OF_THREE), sources, *given)
    return chooser.choose(BASE_SUITE, lambda _: iter([ONE, OTHER]))


def test_the_samples_keep_half_of_the_time_where_the_share_is_small():
    clock = iter([0.0])
    remote = Reaching(base=(2,), one=(2, 6), other=(2, 6, 10))
    choice = chosen_of_three(remote, TimeBudget(100, clock=lambda: next(clock, 51.0)))
    assert (choice.suite, remote.suite) == (BASE_SUITE, "base")
    assert not [call for call in remote.asked if call[0] == "write"]


@pytest.mark.parametrize(
    ("reached", "taken", "tried"),
    [
        ({"base": (2, 6)}, "base", []),
        ({"base": (2,), "one": (2, 6), "other": (2, 6, 10)}, "one", ["one"]),
        ({"base": (2,), "one": (6,), "other": (2, 6)}, "other", ["one", "other"]),
        ({"base": (2,), "one": (6,), "other": (10,)}, "base", ["one", "other"]),
        ({"base": (), "one": (2,), "other": (10,)}, "one", ["one", "other"]),
    ],
)
def test_suites_are_tried_until_one_executes_half_of_the_change(reached, taken, tried):
    remote = Reaching(**reached)
    choice = chosen_of_three(remote, TimeBudget(SamplingPlan().max_seconds))
    assert (choice.suite.name, remote.suite) == (taken, taken)
    written = [call[1] for call in dict.fromkeys(remote.asked) if call[0] == "write"]
    assert written == [f"benchmarks/{name}.py" for name in tried]


class Unseen(Hurried):
    """A session in which stacks cannot be sampled."""

    def stacks(self, *_, **__):
        raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "no stacks")


def test_what_cannot_be_seen_is_timed_as_before():
    choice = chooser_of(Unseen(), Log(None), SamplingPlan()).choose(BASE_SUITE, lambda _: ())
    assert ([each.time_in_change for each in choice.candidates], choice.is_weak) == ([None, None], False)


class Unfinished(Aiming):
    """A session whose second suite takes longer than there is time."""

    def survey(self, **asked):
        told = super().survey(**asked)
        late = [one.model_copy(update={"outcome": "untraced", "lines": {}}) for one in told.benchmarks]
        # another attempt would come further than this one
        ran = surveyed("f", is_ruled_out=False)
        return told.model_copy(update={"benchmarks": (*late, ran)}) if self.other else told


def test_weak_benchmarks_are_timed_if_a_better_suite_takes_too_long():
    chooser = chooser_of(Unfinished(0.9), Log(None), SamplingPlan())
    choice = chooser.choose(ONE, lambda _: [OTHER])
    assert (choice.suite, choice.is_weak) == (ONE, True)
    assert any("no time to run 1 of 2 benchmarks once" in line for line in chooser.log.lines)


class Slow(Aiming):
    """A session in which a survey takes 100 s, and runs the first benchmark only that is not ruled out."""

    def __init__(self, outcomes):
        super().__init__(0.9)
        self.outcomes, self.now, self.runs = outcomes, 0.0, []

    def write(self, files):
        assert files, "without a suite, its benchmarks are gone"

    def survey(self, selection, **_):
        if selection.only is not None:
            self.runs += [name.partition(".")[0] for name in selection.only]
            ran = [surveyed(name, is_ruled_out=False) for name in self.runs[len(self.runs) - len(selection.only) :]]
            return Survey(benchmarks=tuple(ran), lost={}, extensions=())
        self.now += 100
        left = [name for name in self.outcomes if f"{name}.time_it" not in selection.ruled_out]
        self.runs += left[:1]
        found = [surveyed(name, name not in left) for name in self.outcomes]
        ran = surveyed(left[0], is_ruled_out=False).model_copy(update=self.outcomes[left[0]])
        late = [one.model_copy(update={"outcome": "untraced"}) for one in found if one.module in left[1:]]
        return Survey(benchmarks=(*found[: -len(left)], ran, *late), lost={}, extensions=())


def test_a_survey_goes_on_without_a_reserve_for_samples_if_nothing_else_is_found():
    remote, log = (
        Slow({"a": {"outcome": "timeout"}, "b": {}, "c": {}, "e": {"lines": {"pkg/core.py": (2,)}}}),
        Log(None),
    )
    budget = TimeBudget(550, clock=lambda: remote.now)
    chooser = replace(chooser_of(remote, log, SamplingPlan()), budget=budget)
    choice = chooser.choose(BASE_SUITE, lambda _: ())
    assert [each.name for each in choice.candidates] == ["e.time_it"]
    assert remote.runs == ["a", "b", "c", "e", "e"], "what failed, or reaches nothing, is not run again"
    assert {failure.benchmark for failure in choice.failures} == {"a.time_it"}
    assert "going on with the suite of the base" in log.lines


def test_what_is_found_too_late_to_be_timed_is_for_another_attempt():
    remote = Slow({"a": {}, "b": {}, "e": {"lines": {"pkg/core.py": (2,)}}})
    chooser = chooser_of(remote, Log(None), SamplingPlan())
    with pytest.raises(ItemFailure) as failure:
        replace(chooser, budget=TimeBudget(310, clock=lambda: remote.now)).choose(BASE_SUITE, lambda _: ())
    assert failure.value.kind == "survey_unfinished"
    assert "found too late" in chooser.log.lines[-1]


TOTAL = TracedFunction(
    "pkg/core.py:total", {Arm.BASE: {"pkg/core.py": frozenset({2})}}, {Arm.BASE: {"pkg/core.py": [(1, 2)]}}
)


MEAN = TracedFunction("pkg/core.py:mean", {Arm.BASE: {"pkg/core.py": frozenset({6})}}, {})
LEAST = replace(MEAN, name="pkg/core.py:least", lines={Arm.BASE: {"pkg/core.py": frozenset({10})}})


def choice_of(*shares, untraceable=("src/fast.c",), functions=(TOTAL,)):
    hit = surveyed("e", is_ruled_out=False).model_copy(update={"lines": {"pkg/core.py": (2,)}})
    candidates = [BenchmarkCandidate({Arm.BASE: hit}, True, time_in_change=share) for share in shares]
    return Choice(ONE, candidates, [], ChangedCode({}, {}, untraceable, functions=functions))


@pytest.mark.parametrize(
    ("shares", "untraceable", "lacks"),
    [
        ((None, None), ("src/fast.c",), "of none of its benchmarks it is known that it spends 3% of its time in it"),
        ((None, 0.4), ("src/fast.c",), ""),
        ((None, None), (), ""),
        ((0.01, 0.0), (), "its benchmarks spend less than 3% of their time in it"),
    ],
)
def test_time_in_a_partly_compiled_change_must_be_known_of_a_benchmark(shares, untraceable, lacks):
    assert choice_of(*shares, untraceable=untraceable).lacks == lacks


@pytest.mark.parametrize(
    ("shares", "lacks"),
    [
        ((0.1, 0.5), ""),
        ((0.1, 0.4), "its benchmarks execute 33% of the changed functions"),
        ((None,), "its benchmarks execute 33% of the changed functions"),
    ],
)
def test_a_benchmark_that_does_little_else_is_enough(shares, lacks):
    assert choice_of(*shares, untraceable=(), functions=(TOTAL, MEAN, LEAST)).lacks == lacks


def test_memory_does_not_stand_for_time_in_the_change():
    # flox#431: three benchmarks of time were weak, and two of memory were timed
    hit = surveyed("e", is_ruled_out=False).model_copy(update={"metric": Metric.PEAK_MEMORY, "unit": "bytes"})
    changed = ChangedCode({}, {}, (), functions=(TOTAL,))
    memory = Choice(ONE, [BenchmarkCandidate({Arm.BASE: hit}, True)], [], changed)
    assert not memory.is_weak, "a suite of such benchmarks only"
    with_weak_ones = replace(memory, left_out=UntimedCounts(weak=3))
    assert with_weak_ones.lacks == "its benchmarks spend less than 3% of their time in it"
    assert choice_of(0.4, untraceable=()).is_better_than(with_weak_ones)


def test_known_time_in_the_change_is_better_than_unknown_and_that_than_little():
    known, unknown, little = choice_of(0.4), choice_of(None), choice_of(0.01)
    assert known.is_better_than(unknown)
    assert unknown.is_better_than(little)
    assert not unknown.is_better_than(known)
    assert not known.is_better_than(choice_of(0.9))
