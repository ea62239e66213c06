import math
import random

import pytest

from formulacode_dagster.measuring.measurement.checks import (
    controls_within_promise,
    speedup_is_real,
    time_and_work_agree,
)
from formulacode_dagster.models.check import Doubt
from formulacode_dagster.models.measurement import Arm, InstructionCount, Verdict

BASE = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
CONTROL = [1.01, 1.00, 1.03, 1.02, 1.05, 1.04, 1.07, 1.06]


@pytest.fixture
def faster(samples):
    return {"bench.time_it": samples(base=BASE, control=CONTROL, oracle=[value / 2 for value in CONTROL])}


@pytest.fixture
def same(samples):
    return {"bench.time_it": samples(base=BASE, control=CONTROL, oracle=BASE)}


def altered(row, result=0, **changes):
    """*row* with changes in one of its results."""
    results = list(row.results)
    results[result] = results[result].model_copy(update=changes)
    return row.model_copy(update={"results": tuple(results)})


def test_rows_that_say_what_their_samples_say_pass(measurement, faster, same):
    verdict = speedup_is_real("2026-02", [measurement(faster), measurement(same, number=13)])
    assert verdict.passed
    assert verdict.figures == {"measured": 2, "faster": 1, "contradictions": 0}


def test_a_row_stored_and_read_again_passes(measurement, faster):
    row = measurement(faster)
    assert speedup_is_real("2026-02", [type(row).model_validate_json(row.model_dump_json())]).passed


def test_a_row_of_another_rule_version_is_refused_by_name(measurement, faster):
    row = measurement(faster)
    rule = row.rule.model_copy(update={"version": "of yesterday"})
    (offender,) = speedup_is_real("2026-02", [row.model_copy(update={"rule": rule})]).offenders
    assert offender.startswith("7#12: was judged by version of yesterday of the rule, and here it is")


def test_an_empty_month_passes():
    assert speedup_is_real("2026-02", []).passed


def test_a_claim_that_the_samples_do_not_bear_out_fails(measurement, same):
    verdict = speedup_is_real("2026-02", [measurement(same, verdict=Verdict.FASTER)])
    assert not verdict.passed
    assert any("says verdict faster, its samples say unchanged" in offender for offender in verdict.offenders)


def test_a_speedup_larger_than_measured_fails(measurement, faster):
    (offender,) = speedup_is_real("2026-02", [measurement(faster, speedup=3.0)]).offenders
    assert offender.startswith("7#12: says speedup 3, its samples say 2")


@pytest.mark.parametrize(
    "name", ["speedup", "low", "high", "p_value", "slower_p_value", "control_speedup", "control_low", "control_high"]
)
def test_a_figure_that_was_changed_fails(measurement, faster, name):
    assert not speedup_is_real("2026-02", [measurement(faster, **{name: 0.5})]).passed


@pytest.mark.parametrize("name", ["speedup", "low", "high", "faster_p", "slower_p", "control_speedup"])
def test_a_figure_of_a_benchmark_that_was_changed_fails(measurement, faster, name):
    assert not speedup_is_real("2026-02", [altered(measurement(faster), **{name: 0.5})]).passed


@pytest.mark.parametrize("changes", [{"faster": ()}, {"slower": ("bench.time_it",)}, {"disturbed": True}])
def test_winners_and_losers_that_were_changed_fail(measurement, faster, changes):
    assert not speedup_is_real("2026-02", [measurement(faster, **changes)]).passed


@pytest.mark.parametrize("arm", list(Arm))
def test_too_few_samples_of_an_arm_fail(measurement, faster, arm):
    row = measurement(faster)
    kept = tuple(s for s in row.results[0].samples if s.arm is not arm or s.round < 6)
    verdict = speedup_is_real("2026-02", [altered(row, samples=kept)])
    assert f"has 6 units of the {arm}, 8 are needed" in verdict.offenders[0]


def test_a_missing_control_fails(measurement, faster):
    row = measurement(faster)
    kept = tuple(s for s in row.results[0].samples if s.arm is not Arm.CONTROL)
    assert "no sample of the control" in speedup_is_real("2026-02", [altered(row, samples=kept)]).offenders[0]


def test_a_sample_taken_twice_fails(measurement, faster):
    row = measurement(faster)
    taken = row.results[0].samples
    verdict = speedup_is_real("2026-02", [altered(row, samples=(*taken, taken[0]))])
    assert "two samples of the base in one round" in verdict.offenders[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_sample_of_which_no_ratio_can_be_told_fails(measurement, faster, value):
    row = measurement(faster)
    first, *others = row.results[0].samples
    broken = first.model_copy(update={"value": value})
    assert "without a ratio" in speedup_is_real("2026-02", [altered(row, samples=(broken, *others))]).offenders[0]


def test_a_figure_that_is_not_finite_fails(measurement, faster):
    row = altered(measurement(faster), control_speedup=math.nan)
    assert "not finite" in speedup_is_real("2026-02", [row]).offenders[0]


def test_a_pull_request_measured_twice_fails(measurement, faster):
    verdict = speedup_is_real("2026-02", [measurement(faster), measurement(faster)])
    assert verdict.offenders == ("7#12: 2 rows",)


def test_a_benchmark_listed_twice_fails(measurement, faster):
    row = measurement(faster)
    doubled = row.model_copy(update={"results": row.results * 2})
    assert not speedup_is_real("2026-02", [doubled]).passed


def test_a_row_of_another_month_fails(measurement, faster):
    assert "belongs to 2026-02" in speedup_is_real("2026-01", [measurement(faster)]).offenders[0]


def test_a_row_without_results_fails(measurement, faster):
    row = measurement(faster, results=())
    assert "no benchmark was timed" in speedup_is_real("2026-02", [row]).offenders[0]


@pytest.fixture
def row_of(measurement, samples):
    """A row whose control is so much faster than the base."""
    generator = random.Random(1)  # noqa: S311 - a draw, not a secret

    def make(control, number):
        noise = [[generator.gauss(1, 0.01) for _ in range(8)] for _ in range(3)]
        taken = samples(base=noise[0], control=[value / control for value in noise[1]], oracle=noise[2])
        return measurement({"bench.time_it": taken}, number=number)

    return make


def test_controls_that_hardly_differ_are_within_the_promise(row_of):
    judged = controls_within_promise([row_of(1.0, number) for number in range(20)])
    assert judged.passed
    assert (judged.figures["controls"], judged.figures["accepted"]) == (20, 0)
    assert controls_within_promise([]).passed


def test_one_faster_control_is_chance_and_three_break_the_promise(row_of):
    rows = [row_of(1.0, number) for number in range(20)]
    assert controls_within_promise([*rows, row_of(1.3, 90)]).passed
    judged = controls_within_promise([*rows, *(row_of(1.3, 90 + number) for number in range(3))])
    assert not judged.passed
    assert len(judged.offenders) == 3
    assert "7#90: its control is 1.3" in judged.offenders[0]
    assert "within the noise" in judged.summary
    assert not isinstance(judged, Doubt)


@pytest.mark.parametrize(
    ("others", "accepted", "passed", "only_warns"),
    [
        (0, 1, False, True),
        (1, 1, False, True),
        (2, 1, True, False),
        (0, 2, False, False),
        (5, 2, False, False),
    ],
)
def test_one_control_of_a_month_of_few_only_warns_and_two_shut_the_gate(row_of, others, accepted, passed, only_warns):
    rows = [row_of(1.0, number) for number in range(others)]
    judged = controls_within_promise([*rows, *(row_of(1.3, 90 + number) for number in range(accepted))])
    assert (judged.passed, isinstance(judged, Doubt)) == (passed, only_warns)
    assert len(judged.offenders) == (0 if passed else accepted)


def test_a_slower_control_breaks_no_promise_of_speedups(row_of):
    assert controls_within_promise([row_of(0.7, number) for number in range(20)]).passed


@pytest.mark.parametrize(
    ("speedup", "counts", "offends"),
    [
        pytest.param(3.0, [(300, 100), (270, 100)], False, id="both large"),
        pytest.param(1.05, [(105, 100)], False, id="both small"),
        pytest.param(1.5, [(105, 100)], False, id="not much faster"),
        pytest.param(2.0, [(105, 100), (100, 100)], True, id="faster by the same work"),
        pytest.param(1.05, [(400, 100)], True, id="less work in the same time"),
        pytest.param(9.0, [(None, 100)], False, id="not counted"),
    ],
)
def test_a_task_whose_time_and_work_disagree_is_named(measurement, samples, speedup, counts, offends):
    taken = samples(base=[1.0] * 8, control=[1.0] * 8, oracle=[1 / speedup] * 8)
    instructions = {
        str(place): InstructionCount(base=base, oracle=oracle) for place, (base, oracle) in enumerate(counts)
    }
    row = measurement({"bench.time_it": taken}, instructions=instructions)
    judged = time_and_work_agree([row])
    assert judged.passed is not offends
    assert judged.offenders == (
        ((f"7#12: {row.speedup_text}, {row.instructions_ratio:.2f}× fewer instructions",)) if offends else ()
    )
    assert judged.figures["counted"] == (0 if counts[0][0] is None else 1)
