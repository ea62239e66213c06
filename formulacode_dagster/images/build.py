"""Builds a task's image and verifies it: what the `images` stage does for one item."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from formulacode_dagster.environments.suite_files import BASE_SUITE, SuiteFiles
from formulacode_dagster.models.image import BuildSpec, BuiltImage
from formulacode_dagster.models.pull_request import PullRequest

from .engine import NO_SUBMODULES, Engine, Progress
from .failures import BuildFailure
from .verification import verify_image

__all__ = ["BuildFailure", "build_task_image"]


def build_task_image(
    engine: Engine,
    spec: BuildSpec,
    *,
    mirror: Path,
    pr: PullRequest,
    run_id: str,
    suite: SuiteFiles = BASE_SUITE,
    submodules: Mapping[str, Path] = NO_SUBMODULES,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[BuiltImage, str]:
    """Build and verify the image of *pr*, with the benchmarks of *suite*; also the build's whole log.

    *submodules* are the bare repositories of the spec's, by `owner/name`.

    Raises BuildFailure (an ItemFailure with the whole `log`) of kind `build`, `timeout` or `interpreter`, or named
    after the verification that failed; OutsideSystemError when Docker, the disk or the package index is gone.
    """
    outcome = engine.build(spec, mirror=mirror, run_id=run_id, submodules=submodules, force=force, progress=progress)
    image = BuiltImage(
        month=pr.facts.month,
        repository_id=pr.facts.repository_id,
        number=pr.facts.number,
        engine=engine.name,
        spec=spec,
        tag=outcome.tag,
        digest=outcome.digest,
        location=outcome.location,
        size_bytes=outcome.size_bytes,
        build_seconds=outcome.seconds,
        tiers=outcome.tiers,
        toolchain=outcome.toolchain,
        benchmarks=(),
        verifications=(),
    )
    verified = verify_image(engine, image, mirror=mirror, pr=pr, run_id=run_id, suite=suite)
    if (failure := verified.failure) is not None:
        log = f"{outcome.log}\n$ verify {failure.name}\n{failure.log_tail}"
        what = f"{outcome.tag} does not hold"
        raise BuildFailure(failure.name, what, why=failure.detail, log=log, stage=failure.name, rc=failure.rc)
    made = {"verifications": verified.verifications, "benchmarks": verified.benchmarks}
    return image.model_copy(update=made), outcome.log
