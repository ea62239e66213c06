import pytest

from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.stage import REJECTIONS, MeasuredTask, inputs_of, told
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Look, Verdict
from tests.records import KEY, make_image, make_measurement, make_merged, make_pull_request

PLAN, LIMITS = SamplingPlan(), ResourceLimits()


@pytest.fixture
def task():
    """A task; with changes in its parts, by the part's name."""

    def make(*, pr=None, image=None, environment=None):
        facts = make_merged()
        return MeasuredTask(
            make_pull_request(facts, **(pr or {})),
            make_image(**(image or {})),
            Environment.model_construct(**KEY, **({"suite_sha": "a" * 40} | (environment or {}))),
        )

    return make


@pytest.mark.parametrize(
    "change",
    [{"pr": {"patch_sha256": "1" * 64}}, {"image": {"digest": "sha256:2"}}, {"environment": {"suite_sha": "b" * 40}}],
    ids=["patch", "image", "suite"],
)
def test_what_a_measurement_depends_on_is_measured_again_when_it_changes(task, change):
    assert inputs_of(task(), PLAN, LIMITS) == inputs_of(task(), PLAN, LIMITS)
    assert inputs_of(task(**change), PLAN, LIMITS) != inputs_of(task(), PLAN, LIMITS)


@pytest.mark.parametrize(
    ("plan", "limits"),
    [
        (SamplingPlan(seconds_per_sample=0.2), LIMITS),
        (SamplingPlan(max_seconds=60), LIMITS),
        (SamplingPlan(process_looks=(Look(units=8, alpha=0.01),)), LIMITS),
        (PLAN, ResourceLimits(benchmark_seconds=5)),
    ],
    ids=["sample", "budget", "rule", "limits"],
)
def test_another_plan_rule_or_limit_is_another_measurement(task, plan, limits):
    assert inputs_of(task(), plan, limits) != inputs_of(task(), PLAN, LIMITS)


def test_the_harness_and_the_rules_version_are_part_of_it(task, monkeypatch):
    before = inputs_of(task(), PLAN, LIMITS)
    with monkeypatch.context() as patched:
        patched.setattr("formulacode_dagster.measurement.stage.harness_sha256", lambda: "another")
        assert inputs_of(task(), PLAN, LIMITS) != before
    monkeypatch.setattr("formulacode_dagster.measurement.plan.RULE_VERSION", "3")
    assert inputs_of(task(), PLAN, LIMITS) != before


def test_every_verdict_but_faster_is_a_rejection_of_its_own():
    assert set(REJECTIONS) == set(Verdict) - {Verdict.FASTER}
    assert len(set(REJECTIONS.values())) == len(REJECTIONS)


def test_the_ledger_tells_how_sure_it_is_and_what_it_would_take():
    row = make_measurement({"bench.a": 4.0, "bench.b": 1.0}, needs="it would take about 40 rounds to decide")
    assert told(row) == (
        "2.00× (95 % 1.90 to 2.10) over 2 benchmarks, 1 faster, 0 slower; it would take about 40 rounds to decide"
    )
