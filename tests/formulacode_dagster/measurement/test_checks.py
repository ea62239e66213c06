import math

import pytest

from formulacode_dagster.measurement.checks import speedup_is_real
from formulacode_dagster.measurement.verdict import benchmark_result
from formulacode_dagster.models.measurement import Side

BASE = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]


@pytest.fixture
def faster(samples):
    taken = samples(base=BASE, placebo=BASE[::-1], oracle=[v / 2 for v in BASE])
    return benchmark_result("bench.time_it", taken, executes_change=True)


@pytest.fixture
def same(samples):
    taken = samples(base=BASE, placebo=BASE[::-1], oracle=BASE)
    return benchmark_result("bench.time_it", taken, executes_change=True)


def test_what_the_samples_say_passes(measurement, faster, same):
    verdict = speedup_is_real("2026-02", [measurement([faster]), measurement([same], number=13)])
    assert verdict.passed
    assert verdict.figures == {"measured": 2, "faster": 1, "contradictions": 0}


def test_a_row_stored_and_read_again_passes(measurement, faster):
    row = measurement([faster])
    assert speedup_is_real("2026-02", [type(row).model_validate_json(row.model_dump_json())]).passed


def test_an_empty_month_passes():
    assert speedup_is_real("2026-02", []).passed


def test_a_claim_that_the_samples_do_not_bear_out_fails(measurement, same):
    claimed = measurement([same], is_faster=True, significant=("bench.time_it",), speedup=2.0)
    verdict = speedup_is_real("2026-02", [claimed])
    assert not verdict.passed
    assert any("is_faster" in offender for offender in verdict.offenders)


def test_a_speedup_larger_than_measured_fails(measurement, faster):
    verdict = speedup_is_real("2026-02", [measurement([faster], speedup=3.0)])
    assert verdict.offenders == ("7#12: says 3x, its samples say 2x",)


@pytest.mark.parametrize("name", ["speedup", "p_value", "effect_size", "placebo_speedup", "placebo_p_value"])
def test_a_figure_that_was_changed_fails(measurement, faster, name):
    changed = faster.model_copy(update={name: 0.5})
    assert not speedup_is_real("2026-02", [measurement([faster], results=(changed,))]).passed


@pytest.mark.parametrize("side", list(Side))
def test_too_few_samples_of_a_side_fail(measurement, faster, side):
    kept = tuple(s for s in faster.samples if s.side is not side or s.round < 6)
    row = measurement([faster], results=(faster.model_copy(update={"samples": kept}),))
    verdict = speedup_is_real("2026-02", [row])
    assert f"has 6 samples of the {side}" in verdict.offenders[0]


def test_a_missing_placebo_fails(measurement, faster):
    kept = tuple(s for s in faster.samples if s.side is not Side.PLACEBO)
    row = measurement([faster], results=(faster.model_copy(update={"samples": kept}),))
    assert "has 0 samples of the placebo" in speedup_is_real("2026-02", [row]).offenders[0]


def test_a_sample_taken_twice_fails(measurement, faster):
    row = measurement([faster], results=(faster.model_copy(update={"samples": (*faster.samples, faster.samples[0])}),))
    assert "two samples of the base in one round" in speedup_is_real("2026-02", [row]).offenders[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_sample_that_is_no_duration_fails(measurement, faster, value):
    broken = faster.samples[0].model_copy(update={"seconds": value})
    row = measurement([faster], results=(faster.model_copy(update={"samples": (broken, *faster.samples[1:])}),))
    assert "no duration" in speedup_is_real("2026-02", [row]).offenders[0]


def test_a_figure_that_is_not_finite_fails(measurement, faster):
    row = measurement([faster], results=(faster.model_copy(update={"placebo_speedup": math.nan}),))
    assert "not finite" in speedup_is_real("2026-02", [row]).offenders[0]


def test_a_pull_request_measured_twice_fails(measurement, faster):
    verdict = speedup_is_real("2026-02", [measurement([faster]), measurement([faster])])
    assert verdict.offenders == ("7#12: 2 rows",)


def test_a_benchmark_listed_twice_fails(measurement, faster):
    assert not speedup_is_real("2026-02", [measurement([faster], results=(faster, faster))]).passed


def test_a_row_of_another_month_fails(measurement, faster):
    assert "belongs to 2026-02" in speedup_is_real("2026-01", [measurement([faster])]).offenders[0]


def test_a_row_without_results_fails(measurement):
    assert "no benchmark was timed" in speedup_is_real("2026-02", [measurement([])]).offenders[0]
