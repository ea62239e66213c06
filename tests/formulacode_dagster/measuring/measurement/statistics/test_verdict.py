import math
import random

import pytest

from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.measuring.measurement.statistics.verdict import accepts_control, judge
from formulacode_dagster.models.measurement import Arm, RandomizationUnit, Sample, Verdict
from tests.support.noise import SimulatedTask

RULE = SamplingPlan().rule(RandomizationUnit.PROCESS)
BUILDS = SamplingPlan().rule(RandomizationUnit.BUILD)
BASE = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
CONTROL = [1.01, 1.00, 1.03, 1.02, 1.05, 1.04, 1.07, 1.06]
PROMISE = 0.01


def sometimes_a_tenth(generator):
    return math.log(1.1) if generator.random() < 0.3 else 0.0


def layout(spread):
    return lambda generator: generator.gauss(0, spread)


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a draw, not a secret


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "task"),
    [
        (RandomizationUnit.PROCESS, SimulatedTask()),
        (RandomizationUnit.PROCESS, SimulatedTask(workloads=1, noise=0.08)),
        (RandomizationUnit.BUILD, SimulatedTask(workloads=1, layout=layout(0.01))),
        (RandomizationUnit.BUILD, SimulatedTask(workloads=1, layout=layout(0.03))),
        (RandomizationUnit.BUILD, SimulatedTask(workloads=1, layout=sometimes_a_tenth)),
    ],
    ids=["processes", "noisy processes", "layouts of 1 %", "layouts of 3 %", "10 % in 30 % of builds"],
)
def test_patches_without_effect_are_called_faster_at_the_promised_rate(unit, task):
    """One build a side called up to a quarter of these faster."""
    generator = seeded(1)
    accepted = sum(task.judged(generator, unit)[0].verdict is Verdict.FASTER for _ in range(150))
    assert clopper_pearson(accepted, 150)[0] <= PROMISE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "task"),
    [
        (RandomizationUnit.PROCESS, SimulatedTask(speedup=1.2)),
        (RandomizationUnit.BUILD, SimulatedTask(speedup=1.2, workloads=1, layout=layout(0.03))),
    ],
    ids=["processes", "builds"],
)
def test_a_fifth_is_found(unit, task):
    generator = seeded(2)
    found = sum(task.judged(generator, unit)[0].verdict is Verdict.FASTER for _ in range(60))
    assert found >= 57


def test_twice_as_fast_is_seen_at_the_first_look_that_may_claim_it():
    generator = seeded(3)
    ends = [SimulatedTask(speedup=2.0, noise=0.05).judged(generator, RandomizationUnit.PROCESS) for _ in range(20)]
    assert {(judged.verdict, look) for judged, look in ends} == {(Verdict.FASTER, 1)}


def test_what_is_no_faster_ends_even_earlier():
    generator = seeded(4)
    ends = [SimulatedTask().judged(generator, RandomizationUnit.PROCESS) for _ in range(20)]
    assert {judged.verdict for judged, _ in ends} == {Verdict.UNCHANGED}
    assert sum(look == 0 for _, look in ends) >= 16


def test_what_is_no_faster_is_seen_to_be_so_on_a_noisy_machine_too():
    generator = seeded(5)
    ends = [SimulatedTask(workloads=1, noise=0.06).judged(generator, RandomizationUnit.PROCESS)[0] for _ in range(20)]
    assert sum(judged.verdict is Verdict.UNCHANGED for judged in ends) >= 18


def test_a_slow_down_is_not_called_unchanged_before_it_can_be_told(samples):
    slower = {"bench.a": samples(base=BASE[:4], control=CONTROL[:4], oracle=[v * 1.2 for v in CONTROL[:4]])}
    assert judge(slower, RULE, 0).verdict is Verdict.INCONCLUSIVE


def test_opposite_effects_are_not_called_unchanged_too_early(samples):
    both = {
        "bench.a": samples(base=BASE[:4], control=CONTROL[:4], oracle=[v * 1.5 for v in CONTROL[:4]]),
        "bench.b": samples(base=BASE[:4], control=CONTROL[:4], oracle=[v / 1.5 for v in CONTROL[:4]]),
    }
    assert judge(both, RULE, 0).verdict is Verdict.INCONCLUSIVE


def test_nothing_is_called_faster_or_slower_where_no_chance_may_be_spent(samples):
    for factor in (0.1, 10):
        clear = {"bench.a": samples(base=BASE, control=CONTROL, oracle=[v * factor for v in CONTROL])}
        assert judge(clear, RULE, 0).verdict is Verdict.INCONCLUSIVE


def test_a_clear_speedup_is_told_with_its_size_and_interval(samples):
    judged = judge({"bench.a": samples(base=BASE, control=CONTROL, oracle=[v / 2 for v in CONTROL])}, RULE, 1)
    assert judged.verdict is Verdict.FASTER
    assert judged.low < 2.0 < judged.high
    assert judged.speedup == pytest.approx(2.0, rel=0.01)
    assert judged.p_value == 2**-8
    assert judged.faster == ("bench.a",)


def test_the_speedup_is_over_all_workloads_and_winners_are_named(samples):
    same = samples(base=BASE, control=CONTROL, oracle=CONTROL)
    fast = samples(base=BASE, control=CONTROL, oracle=[v / 4 for v in CONTROL])
    judged = judge({"bench.a": same, "bench.b": fast}, RULE, 1)
    assert judged.verdict is Verdict.FASTER
    assert judged.speedup == pytest.approx(2.0, rel=0.01)
    assert (judged.faster, judged.slower) == (("bench.b",), ())


def test_one_winner_and_23_five_times_slower_is_no_speedup(samples):
    taken = {f"bench.{n}": samples(base=BASE, control=CONTROL, oracle=[v * 5 for v in CONTROL]) for n in range(23)}
    taken["bench.win"] = samples(base=BASE, control=CONTROL, oracle=[v / 1.5 for v in CONTROL])
    judged = judge(taken, RULE, 1)
    assert judged.verdict is Verdict.TRADE_OFF
    assert judged.speedup < 0.3
    assert judged.faster == ("bench.win",)
    assert len(judged.slower) == 23


def test_a_loser_among_winners_is_a_trade_off(samples):
    taken = {f"bench.{n}": samples(base=BASE, control=CONTROL, oracle=[v / 3 for v in CONTROL]) for n in range(3)}
    taken["bench.lose"] = samples(base=BASE, control=CONTROL, oracle=[v * 1.3 for v in CONTROL])
    judged = judge(taken, RULE, 1)
    assert (judged.verdict, judged.slower) == (Verdict.TRADE_OFF, ("bench.lose",))
    assert judged.speedup > 1.5


def test_what_got_slower_is_slower(samples):
    judged = judge({"bench.a": samples(base=BASE, control=CONTROL, oracle=[v * 2 for v in CONTROL])}, RULE, 1)
    assert judged.verdict is Verdict.SLOWER
    assert judged.slower_p_value == 2**-8


def test_a_control_that_differs_makes_any_claim_worthless(samples):
    fast = [v / 2 for v in BASE]
    judged = judge({"bench.a": samples(base=BASE, control=fast, oracle=fast)}, RULE, 1)
    assert (judged.verdict, judged.disturbed, judged.is_decided) == (Verdict.INCONCLUSIVE, True, True)
    assert "quieter machine" in judged.needs
    assert accepts_control({"bench.a": samples(base=BASE, control=fast, oracle=fast)}, RULE, 1)
    assert not accepts_control({"bench.a": samples(base=BASE, control=CONTROL, oracle=fast)}, RULE, 1)


def test_a_certain_but_tiny_difference_is_no_change(samples):
    judged = judge({"bench.a": samples(base=BASE, control=CONTROL, oracle=[v / 1.02 for v in BASE])}, RULE, 1)
    assert judged.verdict is Verdict.UNCHANGED
    assert judged.p_value == 2**-8


def test_what_is_undecided_says_what_it_would_take(samples):
    oracle = [v / (1.5 if n % 2 else 0.8) for n, v in enumerate(BASE)]
    judged = judge({"bench.a": samples(base=BASE, control=CONTROL, oracle=oracle)}, RULE, 1)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert not judged.is_decided
    assert "it would take about" in judged.needs
    assert "rounds to decide" in judged.needs


def built(effect, *, base=None, oracle=None, builds=8):
    """One sample of a build of each arm a round, with objects of their own unless given."""
    objects = {Arm.BASE: base, Arm.ORACLE: oracle}
    return [
        Sample(
            arm=arm, build=number, objects=(objects.get(arm) or {}).get(number, f"{arm}{number}"), round=number,
            order=0, calls=1, value=(1 + 0.01 * number + 0.001 * len(arm)) / (effect if arm is Arm.ORACLE else 1),
        )
        for arm in Arm for number in range(builds)
    ]  # fmt: skip


def test_pairs_of_builds_are_the_units_of_compiled_code():
    judged = judge({"bench.a": built(1.5)}, BUILDS, 1)
    assert (judged.verdict, judged.p_value) == (Verdict.FASTER, 2**-8)


@pytest.mark.parametrize(
    ("base", "oracle", "units"),
    [
        ({0: "x", 5: "x"}, None, 7),
        (None, {0: "x", 5: "x", 7: "x"}, 6),
        ({0: "x", 5: "x"}, {5: "y", 6: "y"}, 6),
        ({0: "x"}, {3: "x"}, 7),
        ({4: "x"}, {4: "x"}, 8),
        (dict.fromkeys(range(8), "x"), None, 1),
        (dict.fromkeys(range(8), ""), None, 8),
    ],
    ids=["base twice", "oracle thrice", "a chain", "of one arm in another's block", "a pair", "all", "no objects"],
)
def test_blocks_that_share_a_binary_are_one(base, oracle, units):
    """However often the same binary is built or run, it is one sample of layouts."""
    judged = judge({"bench.a": built(1.5, base=base, oracle=oracle)}, BUILDS, 1)
    assert judged.p_value == 2**-units
    assert (judged.verdict is Verdict.FASTER) == (units == 8)


@pytest.mark.parametrize("rule", [RULE, BUILDS])
def test_an_arm_without_samples_is_refused(samples, rule):
    with pytest.raises(ValueError, match="base and control"):
        judge({"bench.a": samples(base=BASE, oracle=BASE)}, rule, 0)
    with pytest.raises(ValueError, match="without a benchmark"):
        judge({}, rule, 0)
