"""A task: a pull request measured to be faster, as one record of the dataset."""

from __future__ import annotations

import json
from collections.abc import Sequence

from formulacode_dagster.models.agent_run import Review
from formulacode_dagster.models.base import PullRequestRow
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.grading import TaskGrading
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.measurement import BenchmarkResult, Measurement, Returned, Source
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import PublishedImage, Replay, TaskRecord
from formulacode_dagster.selection.statements.hinted import state_hinted


def build_task_record(
    *,
    pr: PullRequest,
    patch: bytes,
    classification: Classification,
    statement: ProblemStatement,
    environment: Environment,
    measurement: Measurement,
    correctness: Correctness,
    image: BuiltImage,
    published: PublishedImage | None,
    procedure: str | None = None,
    replays: Sequence[Replay] = (),
    grading: TaskGrading | None = None,
    reviews: Sequence[Review] = (),
) -> TaskRecord:
    """Return the record of one task; `pulled_by_digest` if the very image that was measured was pulled back from a
    registry, and the benchmarks are not a model's.

    *procedure* describes how it was measured, and how to measure it again; *replays* are the repetitions. A *grading*
    of another image than the published one is ignored.

    Raises ItemFailure (`not_a_task`) if the pull request is not measured to be faster, and (`mismatch`) if the parts
    belong to different pull requests or the measurement to another image: such a record would claim an unseen result.
    """
    parts = (classification, statement, environment, measurement, correctness, image, published)
    _require_one_task(pr, [part for part in parts if part], measurement, correctness, image, published)
    if not measurement.is_faster:
        raise ItemFailure(
            FailureKind.NOT_A_TASK,
            f"{pr.item} is not a task",
            why=f"it was measured to be {measurement.verdict.replace('_', '-')}",
            remedy="Only release pull requests that were measured to be faster",
        )
    text, encoding = patch_text(patch)
    # a model-written workload shows a speed-up, and is no ground by itself
    is_pulled = published is not None and published.pulled_digest == published.digest
    pulled_by_digest = is_pulled and measurement.provenance.source is not Source.MODEL
    is_graded = grading is not None and published is not None and grading.image_digest == published.digest
    timed, provenance = _timed(pr, measurement), measurement.provenance
    return TaskRecord(
        task_id=pr.task_id,
        repo_name=pr.facts.repository,
        container_name=f"{pr.facts.repository.replace('/', '-')}-{pr.change.base_sha}:final".lower(),
        image_name=published.reference if published else None,
        image_digest=published.digest if published else None,
        difficulty=classification.difficulty.value,
        classification=classification.category.value,
        classification_evidence=classification.evidence,
        patch=text,
        patch_encoding=encoding,
        final_md=statement.final_md,
        pr_merged_at=pr.facts.merged_at,
        pr_merge_commit_sha=pr.facts.merge_commit_sha,
        pr_base_sha=pr.change.base_sha,
        pr_number=pr.facts.number,
        license=environment.license or None,
        month=pr.facts.month,
        python=environment.python,
        lock=environment.lock,
        metric=measurement.metric.value,
        speedup=measurement.speedup,
        speedup_low=measurement.low,
        speedup_high=measurement.high,
        p_value=measurement.p_value,
        control_speedup=measurement.control_speedup,
        faster_benchmarks=measurement.faster,
        slower_benchmarks=measurement.slower,
        benchmark_returns=tuple(
            measurement.returned.get(result.benchmark, Returned.NOT_COMPARABLE).value for result in timed
        ),
        pass_to_pass=correctness.pass_to_pass,
        fail_to_pass=correctness.fail_to_pass,
        flaky_tests=correctness.flaky,
        changed_lines=correctness.changed_lines,
        covered_lines=correctness.covered_lines,
        weak_tests=correctness.weak_tests,
        machine=measurement.machine,
        procedure=procedure,
        replays=json.dumps([replay.note.model_dump(mode="json") for replay in replays]),
        reviews=json.dumps([_shown(review) for review in reviews]),
        benchmarks=tuple(result.benchmark for result in timed),
        benchmark_speedups=tuple(result.speedup for result in timed),
        benchmark_metrics=tuple(result.quantity.metric.value for result in timed),
        benchmark_units=tuple(result.quantity.unit for result in timed),
        benchmark_lines=tuple(
            json.dumps(measurement.executed.get(result.benchmark, {}), sort_keys=True) for result in timed
        ),
        workload_source=provenance.source.value,
        workload_repository=provenance.repository or pr.facts.repository,
        workload_commit=provenance.commit or pr.change.base_sha,
        workload_sha256=provenance.sha256,
        workload_adapted=provenance.adapted,
        statement_minimal=statement.statement_minimal,
        statement_issue=statement.statement_issue,
        statement_hinted=state_hinted(statement, measurement, pr.facts, patch).text,
        pulled_by_digest=pulled_by_digest,
        verified=pulled_by_digest,
        instructions_ratio=measurement.instructions_ratio,
        change_reached=measurement.reached,
        probes=_probes(grading) if grading and is_graded else None,
    )


def _shown(review: Review) -> dict[str, str]:
    shown: dict[str, str] = review.model_dump(mode="json", include={"verdict", "note", "reviewed_by", "reviewed_at"})
    return shown


def _probes(grading: TaskGrading) -> str:
    shown = {"probe", "reward", "reason"}
    return json.dumps([result.model_dump(mode="json", include=shown) for result in grading.results])


def patch_text(patch: bytes) -> tuple[str, str]:
    """The patch as text, and the encoding that gives git's bytes back.

    Nearly every patch is UTF-8. One that touches a file in another encoding is not, and cannot be made so without
    breaking it: it is read as Latin-1, in which every byte is one character, and the record says so.
    """
    try:
        return patch.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return patch.decode("latin-1"), "latin-1"


def _timed(pr: PullRequest, measurement: Measurement) -> list[BenchmarkResult]:
    by_name = {result.benchmark: result for result in measurement.results}
    missing = sorted({*measurement.faster, *measurement.slower} - set(by_name))
    if missing:
        raise ItemFailure(
            FailureKind.MISMATCH,
            f"{pr.item}: the measurement of {missing[0]} is missing",
            why=f"{len(missing)} benchmarks are called faster or slower and have no samples",
            remedy="Measure the pull request again with --force",
        )
    return [by_name[name] for name in sorted(by_name)]


def _require_one_task(
    pr: PullRequest,
    parts: Sequence[PullRequestRow],
    measurement: Measurement,
    correctness: Correctness,
    image: BuiltImage,
    published: PublishedImage | None,
) -> None:
    for part in parts:
        if (part.repository_id, part.number) != pr.key:
            raise ItemFailure(
                FailureKind.MISMATCH, f"{pr.item}: a {type(part).__name__} of another pull request was handed in"
            )
    measured = {image.digest, correctness.image_digest, *([published.image_digest] if published else [])}
    if measured != {measurement.image_digest}:
        raise ItemFailure(
            FailureKind.MISMATCH,
            f"{pr.item}: the measured image is not the released one",
            why=f"measured {measurement.image_digest}, built, tested or published {', '.join(sorted(measured))}",
            remedy="Materialize images, measurements and published_images again for this pull request",
        )
