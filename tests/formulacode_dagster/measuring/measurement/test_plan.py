import pytest
from pydantic import ValidationError

from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.chance import smallest_sign_flip_p
from formulacode_dagster.models.measurement import InterimAnalysis, Metric, RandomizationUnit


def test_the_alphas_of_all_looks_are_one_percent():
    for unit in RandomizationUnit:
        assert SamplingPlan().rule(unit).alpha == pytest.approx(0.01)


def test_every_look_of_the_plan_can_decide():
    for unit in RandomizationUnit:
        claims = [look for look in SamplingPlan().rule(unit).looks if look.alpha]
        assert claims
        assert all(smallest_sign_flip_p(look.units) <= look.alpha for look in claims)


def test_each_metric_has_its_alphas_and_small_rests_go_to_the_next():
    time, both = (SamplingPlan().rule(RandomizationUnit.PROCESS, metrics) for metrics in ([Metric.TIME], set(Metric)))
    assert time == SamplingPlan().rule(RandomizationUnit.PROCESS)
    assert both.metrics == tuple(Metric)
    assert both.alpha == pytest.approx(0.01)
    # a quarter of 0.004 is less than 8 rounds can reach
    assert [look.alpha for look in both.looks] == pytest.approx([0, 0, 0.007 / 4, 0.002 / 4, 0.001 / 4])
    assert both.first_claim.units == 12


def test_a_plan_that_could_never_find_anything_is_refused():
    with pytest.raises(ValidationError, match="never reach"):
        SamplingPlan(looks=(InterimAnalysis(units=7, alpha=0.004),))


def test_looks_come_one_after_the_other():
    with pytest.raises(ValidationError, match="more units"):
        SamplingPlan(looks=(InterimAnalysis(units=12, alpha=0.004), InterimAnalysis(units=8, alpha=0.006)))
    again = InterimAnalysis(units=8, alpha=0.004)
    with pytest.raises(ValidationError, match="more units"):
        SamplingPlan(looks=(again, again))


def test_the_last_look_can_claim_something():
    with pytest.raises(ValidationError, match="needs an alpha"):
        SamplingPlan(looks=(InterimAnalysis(units=8, alpha=0.004), InterimAnalysis(units=12, alpha=0)))
