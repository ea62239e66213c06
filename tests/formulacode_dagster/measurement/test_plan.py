import pytest
from pydantic import ValidationError

from formulacode_dagster.measurement.plan import SamplingPlan, smallest_p
from formulacode_dagster.models.measurement import Look, Unit


def test_the_alphas_of_all_looks_are_one_percent():
    for unit in Unit:
        assert SamplingPlan().rule(unit).alpha == pytest.approx(0.01)


def test_every_look_of_the_plan_can_decide():
    looks = SamplingPlan().build_looks
    assert smallest_p(Unit.BUILD, looks[:1]) == pytest.approx(1 / 252)
    assert smallest_p(Unit.BUILD, looks[:2]) == pytest.approx(1 / 252)
    assert smallest_p(Unit.BUILD, looks) == pytest.approx(1 / (252 * 6))
    assert smallest_p(Unit.PROCESS, SamplingPlan().process_looks[:2]) == 2**-8


def test_a_plan_that_could_never_find_anything_is_refused():
    with pytest.raises(ValidationError, match="never reach"):
        SamplingPlan(process_looks=(Look(units=7, alpha=0.004),))
    with pytest.raises(ValidationError, match="never reach"):
        SamplingPlan(build_looks=(Look(units=4, alpha=0.01),))


def test_looks_come_one_after_the_other():
    with pytest.raises(ValidationError, match="more units"):
        SamplingPlan(process_looks=(Look(units=12, alpha=0.004), Look(units=8, alpha=0.006)))
    again = Look(units=5, processes=3, alpha=0.004)
    with pytest.raises(ValidationError, match="more processes"):
        SamplingPlan(build_looks=(again, again))


def test_the_last_look_can_claim_something():
    with pytest.raises(ValidationError, match="needs an alpha"):
        SamplingPlan(process_looks=(Look(units=8, alpha=0.004), Look(units=12, alpha=0)))
