import threading

import pytest

from formulacode_dagster.building.suites.harness.results import returned
from formulacode_dagster.building.suites.questions import Survey, SurveyedBenchmark
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.returned import compare_returned
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, Returned
from formulacode_dagster.models.reasons import FailureKind


class Meeting:
    """A session's harness on two cores, which answers when the other side has been asked, too."""

    core_count = 2

    def __init__(self, barrier, *values):
        self.barrier, self.returning = barrier, Returning(a=values)

    def survey(self, **asked):
        self.barrier.wait()
        return self.returning.survey(**asked)


class BreakingOff:
    """A session's harness that ends without an answer so many times, and gives what benchmarks return afterwards."""

    def __init__(self, times, value):
        self.left, self.returning = times, Returning(a=[value])

    def survey(self, **asked):
        self.left -= 1
        if self.left >= 0:
            raise ItemFailure(FailureKind.SESSION_GONE, "the session is gone")
        return self.returning.survey(**asked)


class Returning:
    """A session's harness in which benchmarks return what a script says, call by call; what is left out fails."""

    core_count = 1

    def __init__(self, **scripts):
        self.scripts = {name: list(values) for name, values in scripts.items()}
        self.asked, self.seeds = [], []

    def survey(self, *, selection, results, hash_seed, **_limits):
        assert results
        only = selection.only
        self.asked.append(sorted(only))
        self.seeds.append(hash_seed)
        ran = [self.surveyed(name, self.scripts[name].pop(0)) for name in only if self.scripts.get(name)]
        return Survey(benchmarks=tuple(ran), lost={}, extensions=())

    def surveyed(self, name, value):
        fields = {"name": name, "module": "m", "owner": "", "attribute": name, "index": 0, "timeout": 1.0}
        answer = {"cache_folder": "", "outcome": "ran", "returned": returned(value)}
        return SurveyedBenchmark.model_validate(fields | answer)


def compared(*, base=(), oracle=(), control=()):
    remotes = {
        arm: Returning(a=values) for arm, values in ((Arm.BASE, base), (Arm.ORACLE, oracle), (Arm.CONTROL, control))
    }
    told = compare_returned(remotes, ["a"], ResourceLimits(), SamplingPlan(), Log(None))
    return told["a"], {arm.value: len(remote.asked) for arm, remote in remotes.items()}


def test_what_is_the_same_takes_one_call_a_side():
    assert compared(base=[[1, 2.0]], oracle=[[1, 2.0 + 1e-12]]) == (
        Returned.SAME, {"base": 1, "oracle": 1, "control": 0},
    )  # fmt: skip


def test_what_differs_and_is_the_same_again_on_either_side_is_different():
    assert compared(base=[1], control=[1], oracle=[2, 2]) == (
        Returned.DIFFERENT, {"base": 1, "oracle": 2, "control": 1},
    )  # fmt: skip


def test_both_sides_have_the_same_hash_seeds_in_each_pair_of_calls():
    remotes = {Arm.BASE: Returning(a=[1]), Arm.ORACLE: Returning(a=[2, 2]), Arm.CONTROL: Returning(a=[1])}
    compare_returned(remotes, ["a"], ResourceLimits(), SamplingPlan(), Log(None))
    first, second = remotes[Arm.ORACLE].seeds
    assert (remotes[Arm.BASE].seeds, remotes[Arm.CONTROL].seeds) == ([first], [second])
    assert first != second


@pytest.mark.parametrize(
    ("control", "again"), [([9], [2]), ([1], [9]), ([], [2]), ([1], [])], ids=["base", "oracle", "lost", "lost again"]
)
def test_what_differs_between_two_calls_of_one_side_is_no_evidence(control, again):
    assert compared(base=[1], control=control, oracle=[2, *again])[0] is Returned.UNSTABLE


@pytest.mark.parametrize(
    ("base", "oracle"),
    [([None], [None]), ([object()], [1]), ([1], [object()]), ([], [1]), ([1], [])],
    ids=["nothing", "base without a form", "oracle without a form", "base fails", "oracle fails"],
)
def test_what_says_nothing_is_not_compared(base, oracle):
    assert compared(base=base, oracle=oracle)[0] is Returned.NOT_COMPARABLE


@pytest.mark.parametrize(("times", "told"), [(1, Returned.SAME), (2, Returned.NOT_COMPARABLE)])
def test_a_failing_harness_is_retried_once_and_loses_no_samples(times, told):
    remotes, log = {Arm.BASE: Returning(a=[1]), Arm.ORACLE: BreakingOff(times, 1)}, Log(None)
    assert compare_returned(remotes, ["a"], ResourceLimits(), SamplingPlan(), log) == {"a": told}
    assert log.lines.count("what benchmarks return on the oracle cannot be told: the session is gone") == times


def test_nothing_in_the_place_of_something_is_different():
    assert compared(base=[1], control=[1], oracle=[None, None])[0] is Returned.DIFFERENT


def test_both_sides_are_asked_at_the_same_time_where_each_has_a_core():
    barrier = threading.Barrier(2, timeout=20)
    values = {Arm.BASE: [1], Arm.ORACLE: [2, 2], Arm.CONTROL: [1]}
    remotes = {arm: Meeting(barrier, *script) for arm, script in values.items()}
    assert compare_returned(remotes, ["a"], ResourceLimits(), SamplingPlan(), Log(None)) == {"a": Returned.DIFFERENT}
