"""Builds a task's image once and verifies it. `repairs.loop` repeats it until it passes."""

from __future__ import annotations

from dataclasses import dataclass, field

from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.protocol import BuildOutcome, Engine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.building.verification.contents import Listing, listings
from formulacode_dagster.building.verification.evidence import Subject
from formulacode_dagster.building.verification.origin import MirrorOrigin
from formulacode_dagster.building.verification.verify import ImageVerification, verify
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.image import BuildSpec, BuiltImage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind


@dataclass(frozen=True)
class Built:
    """A completed build, and its verifications."""

    image: BuiltImage
    verified: ImageVerification = field(repr=False)
    log: str = field(repr=False)
    installed: tuple[Listing, ...] = field(default=(), repr=False)
    """Distributions installed in the image, if all verifications pass."""

    @property
    def failure(self) -> BuildFailure | None:
        """The failed verification as an error; its log is that of the build and of the command."""
        failed = self.verified.failure
        if failed is None:
            return None
        log = f"{self.log}\n$ verify {failed.name}\n{failed.log_tail}"
        what = f"{self.image.tag} failed"
        return BuildFailure(FailureKind(failed.name), what, why=failed.detail, log=log, stage=failed.name, rc=failed.rc)


def unverified(engine: Engine, spec: BuildSpec, pr: PullRequest, outcome: BuildOutcome) -> BuiltImage:
    """The image of *pr* as *engine* built it, of which nothing is verified yet."""
    return BuiltImage(
        month=pr.facts.month,
        repository_id=pr.facts.repository_id,
        number=pr.facts.number,
        engine=engine.name,
        spec=spec,
        tag=outcome.tag,
        digest=outcome.digest,
        location=outcome.location,
        store=engine.store,
        size_bytes=outcome.size_bytes,
        build_seconds=outcome.seconds,
        tiers=outcome.tiers,
        toolchain=outcome.toolchain,
        benchmarks=(),
        verifications=(),
    )


def build_and_verify(
    engine: Engine,
    spec: BuildSpec,
    origins: Origins,
    *,
    pr: PullRequest,
    run_id: str,
    suite: SuiteFiles = BASE_SUITE,
    force: bool = False,
    progress: ProgressReporter | None = None,
) -> Built:
    """Build the image of *pr* from *origins*, and verify it, with the benchmarks of *suite*.

    Raises BuildFailure (an ItemFailure with the whole `log`) of kind `build`, `timeout` or `interpreter`;
    OutsideSystemError when Docker, the disk or the package index is gone.
    """
    outcome = engine.build(spec, origins, force=force, progress=progress)
    image = unverified(engine, spec, pr, outcome)
    verified = verify(Subject(engine, image, MirrorOrigin(origins.mirror, pr), run_id, suite))
    installed = listings(verified.facts) if verified.failure is None else ()
    made = {
        "verifications": verified.verifications,
        "benchmarks": verified.benchmarks,
        "expected_benchmarks": verified.expected_benchmarks,
        "installed": tuple(listing.summary for listing in installed),
    }
    return Built(image.model_copy(update=made), verified, outcome.log, installed)
