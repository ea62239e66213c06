"""Benchmarks of memory and of tracked values, judged along with those of time."""

import math

import pytest

from formulacode_dagster.measuring.measurement.checks import controls_within_promise, speedup_is_real
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.verdict import judge
from formulacode_dagster.models.measurement import Measurement, Metric, Quantity, RandomizationUnit, Sample, Verdict

ROUNDS = 12
LOOK = 2
NOISE = [1 + place % 5 / 400 for place in range(ROUNDS)]
OTHER_NOISE = [1 + (3 * place + 1) % 5 / 400 for place in range(ROUNDS)]
PEAK = Quantity(metric=Metric.PEAK_MEMORY, unit="bytes")
SIZE = Quantity(metric=Metric.MEMORY, unit="bytes")
QUANTITIES = {"peakmem_a": PEAK, "mem_a": SIZE}


def rule(*metrics):
    return SamplingPlan().rule(RandomizationUnit.PROCESS, metrics)


@pytest.fixture
def sampled(samples):
    """Samples of a benchmark whose value with the patch is that of the base by *ratio*; all alike where *exact*."""

    def sample(ratio, *, exact=False, control=1.0):
        base, other = ([1.0] * ROUNDS, [1.0] * ROUNDS) if exact else (NOISE, OTHER_NOISE)
        return samples(base=base, control=[v / control for v in other], oracle=[v / ratio for v in other])

    return sample


def test_a_patch_that_saves_memory_and_no_time_is_faster_by_its_memory(sampled):
    taken = {"time_a": sampled(1.0), "peakmem_a": sampled(1.5)}
    judged = judge(taken, rule(Metric.TIME, Metric.PEAK_MEMORY), LOOK, QUANTITIES)
    assert (judged.verdict, judged.metric) == (Verdict.FASTER, Metric.PEAK_MEMORY)
    assert judged.speedup == pytest.approx(1.5, rel=0.01)
    assert judged.faster == ("peakmem_a",)
    assert [result.quantity for result in judged.results] == [Quantity(), PEAK]


def test_the_time_goes_before_where_both_are_better(sampled):
    taken = {"mem_a": sampled(3.0), "time_a": sampled(1.2)}
    judged = judge(taken, rule(Metric.TIME, Metric.MEMORY), LOOK, QUANTITIES)
    assert (judged.verdict, judged.metric) == (Verdict.FASTER, Metric.TIME)
    assert judged.speedup == pytest.approx(1.2, rel=0.01), "memory is no part of it"


@pytest.mark.parametrize(("time", "memory"), [(1.3, 1 / 1.3), (1 / 1.3, 1.3)])
def test_time_for_memory_is_a_trade_off_either_way(sampled, time, memory):
    taken = {"time_a": sampled(time), "peakmem_a": sampled(memory)}
    judged = judge(taken, rule(Metric.TIME, Metric.PEAK_MEMORY), LOOK, QUANTITIES)
    assert judged.verdict is Verdict.TRADE_OFF
    assert {*judged.faster, *judged.slower} == {"time_a", "peakmem_a"}
    assert judged.metric is (Metric.TIME if time > 1 else Metric.PEAK_MEMORY), "of what is better"


def test_more_memory_is_slower_and_no_change_is_unchanged(sampled):
    rule_of_both = rule(Metric.TIME, Metric.PEAK_MEMORY)
    slower = judge({"time_a": sampled(1.0), "peakmem_a": sampled(1 / 1.5)}, rule_of_both, LOOK, QUANTITIES)
    assert (slower.verdict, slower.metric) == (Verdict.SLOWER, Metric.PEAK_MEMORY)
    same = judge({"time_a": sampled(1.0), "peakmem_a": sampled(1.01)}, rule_of_both, LOOK, QUANTITIES)
    assert (same.verdict, same.metric) == (Verdict.UNCHANGED, Metric.TIME)


@pytest.mark.parametrize(
    ("unit", "ratio", "verdict"),
    [
        ("unit", 1.5, Verdict.FASTER),
        ("iterations", 1 / 1.5, Verdict.SLOWER),
        ("MB/s", 1 / 1.5, Verdict.FASTER),
        ("requests per second", 1.5, Verdict.SLOWER),
        ("GFLOPS", 1 / 1.5, Verdict.FASTER),
        ("s", 1.5, Verdict.FASTER),
    ],
)
def test_of_what_is_tracked_less_is_better_unless_its_unit_is_a_rate(sampled, unit, ratio, verdict):
    """*ratio* is base / oracle of the values as they are."""
    quantities = {"track_a": Quantity(metric=Metric.TRACKED, unit=unit)}
    judged = judge({"track_a": sampled(ratio, exact=True)}, rule(Metric.TRACKED), 1, quantities)
    assert judged.verdict is verdict
    assert judged.speedup == pytest.approx(1.5 if verdict is Verdict.FASTER else 1 / 1.5)


@pytest.mark.parametrize("unit", ["bytes", "ms", "%", "ops", "", "seconds", "steps"])
def test_these_units_are_no_rates(unit):
    assert not Quantity(metric=Metric.TRACKED, unit=unit).is_rate


def test_a_rate_is_one_of_tracked_values_alone():
    assert not Quantity(metric=Metric.PEAK_MEMORY, unit="bytes/s").is_rate


def test_a_value_that_is_always_the_same_is_no_change(sampled):
    judged = judge({"mem_a": sampled(1.0, exact=True)}, rule(Metric.MEMORY), 1, QUANTITIES)
    assert (judged.verdict, judged.speedup) == (Verdict.UNCHANGED, 1.0)


def test_a_control_that_differs_in_memory_makes_a_claim_of_time_worthless(sampled):
    taken = {"time_a": sampled(2.0), "peakmem_a": sampled(1.0, control=1.5)}
    judged = judge(taken, rule(Metric.TIME, Metric.PEAK_MEMORY), LOOK, QUANTITIES)
    assert (judged.verdict, judged.disturbed) == (Verdict.INCONCLUSIVE, True)


def test_a_metric_that_was_not_judged_so_is_found_by_the_check(sampled, measurement):
    taken = {"time_a": sampled(1.0), "peakmem_a": sampled(1.5)}
    judged = judge(taken, rule(Metric.TIME, Metric.PEAK_MEMORY), LOOK, QUANTITIES)
    row = measurement({"time_a": sampled(1.0)}, LOOK, rule=rule(Metric.TIME, Metric.PEAK_MEMORY), **judged.figures())
    assert speedup_is_real("2026-02", [row]).passed
    as_time = [result.model_copy(update={"quantity": Quantity()}) for result in row.results]
    assert not speedup_is_real("2026-02", [row.model_copy(update={"results": tuple(as_time)})]).passed
    assert not speedup_is_real("2026-02", [row.model_copy(update={"metric": Metric.TIME})]).passed


def test_controls_of_memory_are_judged_with_the_others(sampled, measurement):
    rule_of_both = rule(Metric.TIME, Metric.PEAK_MEMORY)
    taken = {"time_a": sampled(1.0), "peakmem_a": sampled(1.0, control=1.5)}
    figures = judge(taken, rule_of_both, LOOK, QUANTITIES).figures()
    row = measurement({"time_a": sampled(1.0)}, LOOK, rule=rule_of_both, **figures)
    assert not controls_within_promise([row] * 20).passed


def test_what_was_stored_before_there_were_metrics_is_read_as_time(sampled, measurement):
    document = measurement({"time_a": sampled(1.5)}, LOOK).model_dump(mode="json")
    result = document["results"][0]
    del document["metric"], document["rule"]["metrics"], result["quantity"]
    for sample in result["samples"]:
        sample["seconds"] = sample.pop("value")
    row = Measurement.model_validate(document)
    assert row.metric is Metric.TIME
    assert speedup_is_real("2026-02", [row]).passed


def test_a_sample_has_a_value_of_which_a_ratio_can_be_told():
    with pytest.raises(ValueError, match="greater than 0"):
        Sample(arm="base", round=0, order=0, value=0, calls=1)
    assert math.isclose(Sample(arm="base", round=0, order=0, value=12, calls=1).value, 12)
