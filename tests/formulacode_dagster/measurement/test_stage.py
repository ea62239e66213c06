import pytest

from formulacode_dagster.measurement.stage import Measured, outcome_of
from formulacode_dagster.measurement.verdict import benchmark_result
from formulacode_dagster.models.reasons import RejectionReason
from tests.support.correctness import correctness_row, reaching_test


@pytest.fixture
def faster(measurement, samples):
    timed = samples(base=[0.02] * 7, oracle=[0.01] * 7, placebo=[0.02] * 7)
    return measurement([benchmark_result("bench.time_total", timed, executes_change=True)])


def test_what_is_faster_and_right_is_done(faster):
    right = correctness_row(reaching_test("...", "..."))
    outcome = outcome_of(faster, right, "log")
    assert (outcome.rejection, outcome.value) == (None, Measured(faster, right))
    assert outcome.detail.startswith("2.00× on 1 of 1 benchmarks; 1 tests pass as before")
    assert "t.py::test: pass_to_pass" in outcome.log


def test_what_is_faster_and_breaks_a_test_is_rejected_with_all_that_was_found(faster):
    wrong = correctness_row(reaching_test("...", "FFF"))
    outcome = outcome_of(faster, wrong, "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason is RejectionReason.ORACLE_BREAKS_TESTS
    assert outcome.value == Measured(faster, wrong)
    assert "breaks t.py::test" in outcome.detail


def test_what_is_no_faster_is_rejected_untested(faster):
    outcome = outcome_of(faster, None, "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason is RejectionReason.NO_SPEEDUP
    assert outcome.value == Measured(faster)
