import threading
from collections import Counter

import pytest

from formulacode_dagster.building.suites.questions import (
    KeptBuild,
    NotTimed,
    Timed,
)
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.measure import sample
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import Arm, RandomizationUnit, Verdict
from formulacode_dagster.models.reasons import FailureKind
from tests.support.scripted_sampler import ScriptedRemote, World, candidate, twice_as_fast

BROKEN = NotTimed(kind="crash", message="segfault", wall=0.1)


def undecided(name, arm, count):
    spread = 0.2 if (count // 3) % 2 else 0.05
    return Timed(value=spread if arm is Arm.ORACLE else 0.1, calls=5, wall=1.0, waited=True)


def samples_of(taken, place=0):
    return taken.judged.results[place].samples


def test_a_clear_effect_ends_at_the_first_look(take):
    taken = take(["a", "b"], twice_as_fast)
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.FASTER, 1, 8)
    # a call of each for warming up goes before, and is thrown away
    assert len(take.world.asked) == 2 * 3 * 9
    assert Counter(s.arm for s in samples_of(taken)) == dict.fromkeys(Arm, 8)
    assert taken.machine == "a machine"


def test_what_excludes_any_effect_ends_at_half_the_rounds_of_a_claim(take):
    taken = take(["a", "b"], lambda *_: Timed(value=1, calls=5, wall=1.0, waited=True))
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.UNCHANGED, 0, 4)


class Beside:
    """Lets a process end only when so many run at the same time."""

    def __init__(self, processes):
        self.barrier = threading.Barrier(processes, timeout=60)

    def __call__(self, name, arm, count):
        if count > len(Arm):
            self.barrier.wait()
        return Timed(value=0.5 if arm is Arm.ORACLE else 1.0, calls=5, wall=1.0, waited=False)


@pytest.mark.parametrize("unit", RandomizationUnit)
def test_arms_of_a_round_run_in_parallel_if_no_call_waits(take, unit):
    taken = take(["a"], Beside(len(Arm)), unit=unit)
    assert taken.judged.verdict is Verdict.FASTER
    shared = [(arm, setting.build, setting.abreast) for _, arm, setting, once, _ in take.world.asked if not once]
    assert {abreast for _, _, abreast in shared} == {len(Arm)}
    groups = [shared[start : start + len(Arm)] for start in range(0, len(shared), len(Arm))]
    assert all({arm for arm, _, _ in group} == set(Arm) for group in groups)


def test_arms_of_a_round_run_in_sequence_if_the_plan_says_so(take):
    def answer(name, arm, count):
        return Timed(value=0.5 if arm is Arm.ORACLE else 1.0, calls=5, wall=1.0, waited=False)

    taken = take(["a"], answer, SamplingPlan(at_once=False))
    assert taken.judged.verdict is Verdict.FASTER
    assert {setting.abreast for _, _, setting, _, _ in take.world.asked} == {1}


def test_what_the_arms_take_of_the_core_from_each_other_is_no_disturbance(take):
    def answer(name, arm, count):
        return Timed(value=0.5 if arm is Arm.ORACLE else 1.0, calls=5, wall=1.0, waited=False)

    taken = take(["a"], answer, conditions=lambda _: {"own": 0.3, "others": 0.65})
    assert [round(conditions.others, 2) for conditions in taken.conditions] == [0.05] * 8


def test_an_unclear_one_goes_on_to_the_last_look(take):
    taken = take(["a"], undecided)
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.INCONCLUSIVE, 4, 24)
    assert taken.judged.needs.endswith("rounds to decide")


def test_the_time_ends_it_at_the_level_of_the_next_look(take):
    taken = take(["a"], undecided, SamplingPlan(max_seconds=3 * 11.5))
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.INCONCLUSIVE, 2, 10)
    assert take.world.now <= 3 * 11.5
    took = "a round took 3 s, and all may take 34.5 s, which is FC_MEASURE_SECONDS but in a replay"
    assert taken.judged.needs.endswith(took)


def test_arms_of_a_round_share_hash_seed_and_layout_across_rounds_not(take):
    taken = take(["a"], twice_as_fast)
    settings = [setting for _, _, setting, once, _ in take.world.asked if not once]
    assert all(len(set(settings[start : start + 3])) == 1 for start in range(0, 24, 3))
    assert len({setting.hash_seed for setting in settings}) == 8
    assert len({setting.padding for setting in settings}) == 8
    assert [s.hash_seed for s in samples_of(taken)] == [setting.hash_seed for setting in settings]


def test_the_order_of_the_arms_is_drawn_in_each_round(take):
    taken = take(["a"], twice_as_fast)
    orders = Counter((s.arm, s.order) for s in samples_of(taken))
    assert len(orders) > 6
    assert len({s.process for s in samples_of(taken)}) == 24


def test_a_disturbed_round_is_taken_again_a_few_times_whatever_its_timings(take):
    taken = take(
        ["a"], twice_as_fast, SamplingPlan(max_repeats=2), conditions=lambda count: {"steal": 0.3 if count < 30 else 0}
    )
    assert [condition.disturbed for condition in taken.conditions[:3]] == [True, True, False]
    assert taken.rounds == 8
    # the third try was as bad, and stays: a machine that is always busy would never be done
    assert taken.conditions[2].steal == 0.3
    assert len(samples_of(taken)) == 24


def test_a_round_that_was_taken_three_times_is_not_what_a_round_takes(take):
    plan = SamplingPlan(max_repeats=2, max_seconds=36)
    taken = take(["a"], twice_as_fast, plan, conditions=lambda count: {"steal": 0.3 if count < 10 else 0})
    assert [condition.disturbed for condition in taken.conditions[:3]] == [True, True, False]
    assert (taken.rounds, taken.judged.verdict) == (8, Verdict.FASTER)


def test_a_hiccup_is_nobodys_fault(take):
    """A failure, on any arm, is retried on all of them, and the round's samples come from there."""
    for arm in Arm:
        failed = []

        def answer(name, on, count, arm=arm, failed=failed):
            if on is arm and count > 20 and not failed:
                failed.append(count)
                return BROKEN
            return twice_as_fast(name, on, count)

        taken = take(["a", "b"], answer)
        assert not taken.failures
        assert {len(result.samples) for result in taken.judged.results} == {24}


def test_what_fails_twice_takes_the_benchmark_out_on_all_arms(take):
    def answer(name, arm, count):
        return BROKEN if name == "a" and arm is Arm.BASE and count > 20 else twice_as_fast(name, arm, count)

    taken = take(["a", "b"], answer)
    assert [result.benchmark for result in taken.judged.results] == ["b"]
    assert [(f.benchmark, f.arm, f.kind) for f in taken.failures] == [("a", Arm.BASE, "crash")]


def test_what_fails_with_the_oracle_alone_twice_is_its_fault(take):
    with pytest.raises(ItemFailure) as failure:
        take(["a", "b"], lambda name, arm, n: BROKEN if arm is Arm.ORACLE and n > 20 else twice_as_fast(name, arm, n))
    assert failure.value.kind == "oracle_breaks_benchmarks"
    assert "segfault" in failure.value.log_tail


def test_what_has_no_ratio_with_the_oracle_is_nobodys_fault(take):
    """A tracked value may well become 0 with the patch."""
    none = NotTimed(kind="no_ratio", message="0 has no ratio")
    taken = take(
        ["a", "b"], lambda name, arm, n: none if name == "a" and arm is Arm.ORACLE else twice_as_fast(name, arm, n)
    )
    assert [result.benchmark for result in taken.judged.results] == ["b"]
    assert [failure.kind for failure in taken.failures] == ["no_ratio"]


def test_other_metrics_are_taken_once_per_process_and_judged_separately(take):
    memory = candidate("m", metric="peakmemory", unit="bytes")
    taken = take([memory, "a"], lambda name, arm, _: Timed(
        value=0.1 if name == "a" else 5e6 if arm is Arm.ORACLE else 1e7, calls=1, wall=0.1, waited=False
    ))  # fmt: skip
    assert (taken.judged.verdict, taken.judged.metric, taken.judged.speedup) == ("faster", "peakmemory", 2.0)
    assert {(name, once) for name, _, _, once, _ in take.world.asked[6:]} == {("m", True), ("a", False)}


def test_what_fails_with_the_oracle_and_then_with_the_base_is_not(take):
    def fails_wherever_it_is_second(name, arm, count):
        broken = name == "a" and ((count < 26 and arm is Arm.ORACLE) or (count >= 26 and arm is Arm.BASE))
        return BROKEN if broken and count > 20 else twice_as_fast(name, arm, count)

    taken = take(["a", "b"], fails_wherever_it_is_second)
    assert [result.benchmark for result in taken.judged.results] == ["b"]


def test_a_task_none_of_whose_benchmarks_runs_is_a_failure(take):
    with pytest.raises(ItemFailure) as failure:
        take(["a"], lambda *_: BROKEN)
    assert failure.value.kind == "benchmarks_fail"


def test_compiled_code_is_rebuilt_per_round_and_timed_within_the_round(take):
    taken = take(["a"], twice_as_fast, unit=RandomizationUnit.BUILD)
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.FASTER, 1, 8)
    assert Counter(take.world.builds) == dict.fromkeys(Arm, 8)
    samples = samples_of(taken)
    assert Counter((s.arm, s.build, s.round) for s in samples) == {(arm, n, n): 1 for arm in Arm for n in range(8)}
    assert all(s.objects == f"{s.arm}{s.round}" for s in samples)
    laid = [setting.build for _, _, setting, once, _ in take.world.asked if not once]
    assert laid == [f"/{n}" for n in range(8) for _ in Arm]


def test_futility_of_compiled_code_ends_after_four_builds_per_arm(take):
    taken = take(["a"], lambda *_: Timed(value=1, calls=5, wall=1.0, waited=True), unit=RandomizationUnit.BUILD)
    assert (taken.judged.verdict, taken.rounds) == (Verdict.UNCHANGED, 4)
    assert len(take.world.builds) == 12


def test_no_more_builds_are_begun_once_their_time_is_used_up(take):
    plan = SamplingPlan(max_build_seconds=3 * 5 * 60)
    taken = take(["a"], undecided, plan, unit=RandomizationUnit.BUILD, build_seconds=60.0)
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.INCONCLUSIVE, 1, 5)


def fails_at(build, kind, arm=Arm.ORACLE):
    """The build of *arm* with this number, counted from 1, fails as *kind*."""

    def make(built, number):
        if (built, number) == (arm, build):
            raise ItemFailure(kind, "it does not build")

    return make


@pytest.mark.parametrize("kind", ["oracle_does_not_build", "base_does_not_build", "timeout"])
def test_a_failed_build_costs_later_rounds_and_no_earlier_ones(take, kind):
    unbuilt = fails_at(6, FailureKind(kind))
    taken = take(["a"], undecided, unit=RandomizationUnit.BUILD, unbuilt=unbuilt)
    assert (taken.judged.verdict, taken.look, taken.rounds) == (Verdict.INCONCLUSIVE, 1, 5)
    assert Counter(s.arm for s in samples_of(taken)) == dict.fromkeys(Arm, 5)
    assert taken.judged.needs.endswith(f"builds an arm to decide; no more could be built: {kind}")


@pytest.mark.parametrize(("build", "kind"), [(2, FailureKind.ORACLE_DOES_NOT_BUILD), (6, FailureKind.SESSION_GONE)])
def test_a_failure_before_any_spread_ends_the_measurement(take, build, kind):
    with pytest.raises(ItemFailure) as failure:
        take(["a"], undecided, unit=RandomizationUnit.BUILD, unbuilt=fails_at(build, kind))
    assert failure.value.kind is kind


@pytest.mark.parametrize("unit", list(RandomizationUnit))
def test_who_waited_long_for_a_core_takes_all_the_rounds_that_decide(take, unit):
    taken = take(["a"], twice_as_fast, unit=unit, build_seconds=1.0, waited=9 * 3600.0)
    assert (taken.judged.verdict, taken.rounds) == (Verdict.FASTER, 8)


class BuiltArms:
    """Arms with these shared objects, at first."""

    log = Log(None)

    def __init__(self, world, base, oracle):
        self.remotes = {arm: ScriptedRemote(arm, world) for arm in Arm}
        self.first = {Arm.BASE: base, Arm.ORACLE: oracle, Arm.CONTROL: base}
        self.built = Counter()

    def objects(self):
        return self.first

    def build_anew(self, arm, _layouts):
        self.built[arm] += 1
        return KeptBuild(folder="/", objects=f"{arm}{self.built[arm]}")


@pytest.mark.parametrize(
    ("base", "oracle", "unit"),
    [("", "", RandomizationUnit.PROCESS), ("a", "a", RandomizationUnit.PROCESS), ("a", "b", RandomizationUnit.BUILD)],
    ids=["no objects", "equal objects", "different objects"],
)
def test_arms_are_rebuilt_exactly_if_the_objects_of_base_and_oracle_differ(base, oracle, unit):
    world, plan = World(twice_as_fast), SamplingPlan()
    arms = BuiltArms(world, base, oracle)
    budget = TimeBudget(plan.max_seconds, clock=lambda: world.now)
    taken = sample(arms, [candidate("a")], plan=plan, budget=budget, core=0)
    assert (taken.rule.unit, taken.judged.verdict) == (unit, Verdict.FASTER)
    assert arms.built == (dict.fromkeys(Arm, 8) if unit is RandomizationUnit.BUILD else {})
    assert arms.built or {s.objects for s in samples_of(taken)} == {base}


def test_arms_that_were_timed_on_different_machines_are_not_compared(take):
    with pytest.raises(ItemFailure, match="different machines: a machine; another machine") as caught:
        take(["a"], twice_as_fast, conditions=lambda count: {"machine": "another machine"} if count > 6 else {})
    assert caught.value.kind == "several_machines"


def test_an_undecided_task_gets_more_time_once_if_it_is_asked_for(take):
    plan, asked = SamplingPlan(max_seconds=20.0), []

    def more_seconds(candidates):
        asked.append([each.name for each in candidates])
        return 12.0

    def few(**more):
        return take(["a"], undecided, plan, **more)

    short, longer = few(), few(more_seconds=more_seconds)
    assert asked == [["a"]]
    assert (short.judged.verdict, short.rounds + 4) == (Verdict.INCONCLUSIVE, longer.rounds)
    assert few(more_seconds=lambda _: 0.0).rounds == short.rounds


def test_a_decided_task_asks_for_no_more_time(take):
    def never(_candidates):
        raise AssertionError

    taken = take(["a"], twice_as_fast, SamplingPlan(max_seconds=28.0), more_seconds=never)
    assert taken.judged.verdict is Verdict.FASTER
