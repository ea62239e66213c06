from dataclasses import replace
from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.stage import (
    REJECTIONS,
    MeasuredTask,
    MeasurementTools,
    inputs_of,
    longest_build_first,
    outcome_of,
    run,
    summary_of,
    work_item,
)
from formulacode_dagster.measuring.workloads.overlay import frames_sha256
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import ResourceLimits, Tier
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.models.links import LinkWalk, ThreadComment
from formulacode_dagster.models.measurement import InterimAnalysis, Returned, Verdict
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.artifacts import MEASUREMENTS
from formulacode_dagster.operating.store.blobs import get_blob
from tests.records import KEY, make_image, make_measurement, make_merged, make_pull_request
from tests.support.correctness import correctness_row, reaching_test

PLAN, LIMITS = SamplingPlan(), ResourceLimits()
TOOLS = MeasurementTools(None, None, PLAN, LIMITS)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def task():
    """A task; with changes in its parts, by the part's name."""

    def make(*, pr=None, image=None, environment=None, facts=None):
        facts = make_merged(**(facts or {}))
        return MeasuredTask(
            make_pull_request(facts, **(pr or {})),
            make_image(**(image or {})),
            Environment.model_construct(**KEY, **({"suite_sha": "a" * 40} | (environment or {}))),
        )

    return make


@pytest.mark.parametrize(
    "change",
    [
        {"pr": {"patch_sha256": "1" * 64}},
        {"image": {"digest": "sha256:2"}},
        {"environment": {"suite_sha": "b" * 40}},
        {"facts": {"body": "```\nimport pkg\npkg.f(3)\n```"}},
        {
            "facts": {
                "linked_issues": (LinkedIssue(repository="a/b", number=3, title="", body="slow", created_at=NOON),)
            }
        },
    ],
    ids=["patch", "image", "suite", "text", "issue"],
)
def test_what_a_measurement_depends_on_is_measured_again_when_it_changes(task, change):
    assert inputs_of(task(), TOOLS) == inputs_of(task(), TOOLS)
    assert inputs_of(task(**change), TOOLS) != inputs_of(task(), TOOLS)


def test_what_is_measured_depends_on_who_else_may_have_a_workload(task):
    assert inputs_of(task(), replace(TOOLS, writer="a-model")) != inputs_of(task(), TOOLS)
    assert inputs_of(task(), replace(TOOLS, writer="a-model")) != inputs_of(task(), replace(TOOLS, writer="another"))


@pytest.mark.parametrize(
    ("plan", "limits"),
    [
        (SamplingPlan(seconds_per_sample=0.2), LIMITS),
        (SamplingPlan(max_seconds=60), LIMITS),
        (SamplingPlan(looks=(InterimAnalysis(units=8, alpha=0.01),)), LIMITS),
        (PLAN, ResourceLimits(benchmark_seconds=5)),
    ],
    ids=["sample", "budget", "rule", "limits"],
)
def test_another_plan_rule_or_limit_is_another_measurement(task, plan, limits):
    assert inputs_of(task(), replace(TOOLS, plan=plan, limits=limits)) != inputs_of(task(), TOOLS)


@pytest.mark.parametrize("code", ["harness_sha256", "frames_sha256"])
def test_what_runs_in_the_sessions_and_the_rules_version_are_part_of_it(task, monkeypatch, code):
    before = inputs_of(task(), TOOLS)
    with monkeypatch.context() as patched:
        patched.setattr(f"formulacode_dagster.measuring.measurement.stage.{code}", lambda: "another")
        assert inputs_of(task(), TOOLS) != before
    monkeypatch.setattr("formulacode_dagster.measuring.measurement.plan.RULE_VERSION", "of tomorrow")
    assert inputs_of(task(), TOOLS) != before


def test_any_file_that_is_laid_around_what_is_timed_counts(tmp_path):
    hashes = set()
    for name, text in (("own_tests.py", "a"), ("own_tests.py", "b"), ("snippets.py", "a")):
        tmp_path.joinpath(name).write_text(text)
        frames_sha256.cache_clear()
        hashes.add(frames_sha256(tmp_path))
    assert len(hashes | {frames_sha256()}) == 4


def test_comments_that_show_code_are_inputs_and_other_discussion_is_not(task):
    def walk(text):
        return LinkWalk(later=(ThreadComment(author="a", body=text, created_at=NOON),))

    plain, code = walk("It is slow."), walk("```\nimport pkg\npkg.total(3)\n```")
    assert inputs_of(replace(task(), walk=plain), TOOLS) == inputs_of(task(), TOOLS)
    assert inputs_of(replace(task(), walk=code), TOOLS) != inputs_of(task(), TOOLS)


def test_nothing_is_measured_again_by_force_without_a_reason(database):
    stage = StageRun(database, Stage.MEASUREMENTS, "2026-02", "run", RunOptions(force=True, reason=" "))
    with pytest.raises(ConfigurationError, match="stored with its reason, and none is given"):
        run_loop(run(stage, TOOLS))


def test_every_verdict_but_faster_is_a_rejection_of_its_own():
    assert set(REJECTIONS) == set(Verdict) - {Verdict.FASTER}
    assert len(set(REJECTIONS.values())) == len(REJECTIONS)


def test_the_ledger_tells_how_sure_it_is_and_what_it_would_take():
    row = make_measurement({"bench.a": 4.0, "bench.b": 1.0}, needs="it would take about 40 rounds to decide")
    assert summary_of(row) == (
        "2.00× (95 % 1.90 to 2.10) over 2 benchmarks, 1 faster, 0 slower; it would take about 40 rounds to decide"
    )


def test_the_ledger_tells_what_was_left_out():
    row = make_measurement({"bench.a": 4.0}, unsurveyed=12, undrawn=7)
    told = "left out: 12 that there was no time to run once, 7 relevant ones that were not drawn"
    assert summary_of(row).endswith(f"1 faster, 0 slower; {told}")


@pytest.fixture
def faster(measurement, samples):
    base = [0.0200, 0.0201, 0.0202, 0.0203, 0.0204, 0.0205, 0.0206, 0.0207]
    taken = samples(base=base, oracle=[seconds / 2 for seconds in base], control=base[::-1])
    return measurement({"bench.time_total": taken})


def test_what_is_faster_and_right_is_done(faster):
    right = correctness_row(reaching_test("...", "..."))
    outcome = outcome_of(MeasuredPullRequest(faster, right), "log")
    assert (outcome.rejection, outcome.value) == (None, MeasuredPullRequest(faster, right))
    assert outcome.detail.startswith("2.00× (95 % 2.00 to 2.00) over 1 benchmarks, 1 faster, 0 slower; 1 tests pass")
    assert "t.py::test: pass_to_pass" in outcome.log


def test_a_faster_patch_that_breaks_a_test_is_rejected_with_its_results(faster):
    wrong = correctness_row(reaching_test("...", "FFF"))
    outcome = outcome_of(MeasuredPullRequest(faster, wrong), "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason is RejectionReason.ORACLE_BREAKS_TESTS
    assert outcome.value == MeasuredPullRequest(faster, wrong)
    assert "breaks t.py::test" in outcome.detail


def test_a_faster_patch_with_another_result_is_rejected_by_name(faster):
    returned = {"bench.time_total": Returned.DIFFERENT, "bench.time_other": Returned.SAME}
    wrong = MeasuredPullRequest(faster.model_copy(update={"returned": returned}))
    outcome = outcome_of(wrong, "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason is RejectionReason.ORACLE_CHANGES_RESULTS
    assert outcome.detail.endswith("with the author's patch bench.time_total returns something else")
    assert outcome.value == wrong


@pytest.mark.parametrize("returned", [returned for returned in Returned if returned is not Returned.DIFFERENT])
def test_what_cannot_be_compared_or_is_the_same_speaks_against_nothing(faster, returned):
    right = correctness_row(reaching_test("...", "..."))
    row = faster.model_copy(update={"returned": {"bench.time_total": returned}})
    assert outcome_of(MeasuredPullRequest(row, right), "log").rejection is None


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.FASTER])
def test_what_is_no_faster_is_rejected_untested(faster, verdict):
    row = faster.model_copy(update={"verdict": verdict})
    outcome = outcome_of(MeasuredPullRequest(row), "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason is REJECTIONS[verdict]
    assert outcome.value == MeasuredPullRequest(row)


@pytest.mark.parametrize(
    ("share", "reached", "reason"),
    [
        (0.01, 1.0, "weakly_aimed"),
        (0.5, 0.5, "no_speedup"),
        (0.5, 0.4, "weakly_aimed"),
        (None, 0.0, "weakly_aimed"),
        (None, None, "no_speedup"),
    ],
)
def test_what_is_unchanged_in_weak_workloads_has_a_reason_of_its_own(faster, share, reached, reason):
    shares = {} if share is None else {"bench.time_total": share}
    row = faster.model_copy(update={"verdict": Verdict.UNCHANGED, "time_in_change": shares, "reached": reached})
    outcome = outcome_of(MeasuredPullRequest(row), "log")
    assert outcome.rejection is not None
    assert outcome.rejection.reason == reason


def test_what_measuring_a_task_again_takes_is_kept_with_it(database, faster):
    image = make_image()
    names = [result.benchmark for result in faster.results]
    procedure = Procedure.of(
        image, patch=b"", suite=BASE_SUITE, benchmarks=names, plan=PLAN, rule=faster.rule, limits=LIMITS
    )
    with database.transaction() as connection:
        save(connection, [MeasuredPullRequest(faster, None, procedure)])
        save(connection, [MeasuredPullRequest(faster.model_copy(update={"number": 13}))])
        kept = {row.number: row.procedure_sha256 for row in MEASUREMENTS.read(connection, faster.month)}
        assert Procedure.parse(get_blob(connection, kept[12]).decode(), "it") == procedure
    assert kept[13] == ""


def test_what_takes_longest_to_build_is_measured_first():
    seconds = {1: 20.0, 2: 300.0, 3: 4.0, 4: 20.0}
    prs = [make_pull_request(make_merged(number=number)) for number in seconds]
    # the package is built in the last tier: what an environment took before does not come again
    tiers = {
        number: [
            Tier(name=name, tag="t", seconds=took, size_bytes=1) for name, took in (("env", 900 - last), ("task", last))
        ]
        for number, last in seconds.items()
    }
    images = {pr.key: make_image(tiers=tiers[pr.key[1]]) for pr in prs}
    assert [pr.key[1] for pr in longest_build_first(prs, images)] == [2, 1, 4, 3]


def test_tasks_of_one_environment_are_neighbours_within_a_store(task):
    def item(layer, store):
        tiers = [Tier(name=name, tag=tag, seconds=1, size_bytes=1) for name, tag in (("env", layer), ("task", "t"))]
        return work_item(task(image={"tiers": tiers, "store": store}), "v1", Here())

    class Here:
        store = "here"

    assert item("one", "here").neighbours == item("one", "there").neighbours != item("two", "here").neighbours
    assert [item("one", store).is_here for store in ("here", "there")] == [True, False]
