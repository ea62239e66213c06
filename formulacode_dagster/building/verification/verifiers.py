"""Checks of one image by hand: put together as one likes, each with a plain result.

`MultiVerifier([SmokeVerifier("pandas"), ProfileVerifier(timeout=300)]).verify(image)` takes an image of the pipeline,
or the name of one that Docker has or can pull. The verifications of the `images` stage judge by the same evidence.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.reference import find_image
from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.questions import (
    NotTimed,
    ProcessSetting,
    Survey,
    SurveyedBenchmark,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import START_SECONDS
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName, Verification
from formulacode_dagster.models.reasons import FailureKind

from .discovery import benchmarks
from .evidence import BENCHMARK_SECONDS, Evidence, Subject, gathering
from .facts import ImageFacts
from .importing import import_modules, imports, modules_of, tops_of
from .origin import FolderOrigin
from .running import one_benchmark_runs
from .tamper_scan import Distribution, installed, site_packages

TIMED_OUT = 124
"""Status of a process killed at its timeout, as `timeout` returns it."""

FAILED = 1
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class VerifierResult:
    """A verifier's findings. A process that was killed, or exceeded its limit, is never `ok`."""

    ok: bool
    rc: int
    """0, TIMED_OUT, or the status of the command that failed."""
    stdout: str
    """Findings."""
    stderr: str
    """Message for a failed verification."""
    duration_s: float = 0.0
    """Total of `verify`."""


class Verifier(ABC):
    """One check of an image."""

    def verify(self, image: BuiltImage | str, *, engine: Engine | None = None) -> VerifierResult:
        """Check *image*, in a session without a network, with the *engine* that built it unless another is given.

        Raises ItemFailure (`image_gone`, `not_ours`), and OutsideSystemError when the engine is gone.
        """
        started = time.monotonic()
        with _examined(image, engine) as evidence:
            result = self.judge(evidence)
        return replace(result, duration_s=round(time.monotonic() - started, 3))

    @abstractmethod
    def judge(self, evidence: Evidence) -> VerifierResult:
        """Check the image that *evidence* is about."""


class SmokeVerifier(Verifier):
    """The package and every one of its compiled extensions import."""

    def __init__(self, package: str, *, timeout: float = 300.0) -> None:
        """*package* is the name one imports, *timeout* seconds for all of it."""
        self._package = package
        self._timeout = timeout

    def judge(self, evidence: Evidence) -> VerifierResult:
        """Import them in one process, outside the checkout."""
        brought = _bringing(evidence.facts, self._package)
        modules = modules_of(evidence.facts, brought, self._package)
        imported = import_modules(evidence.remote, modules, timeout=self._timeout)
        verification = imports(imported, tops_of(evidence.facts, brought) | {self._package})
        is_late = imported.completed is not None and imported.completed.timed_out
        return _result(verification, is_late=is_late)


class ProfileVerifier(Verifier):
    """The benchmarks are found, and at least one of them is timed."""

    def __init__(self, *, timeout: float = 300.0) -> None:
        """*timeout* seconds for finding and running them."""
        self._timeout = timeout

    def judge(self, evidence: Evidence) -> VerifierResult:
        """Discover the suite, run benchmarks of it, and take one sample."""
        started = time.monotonic()
        survey = self._survey(evidence)
        judged = benchmarks(survey, evidence.reading)
        if isinstance(survey, ItemFailure):
            return _result(judged, is_late=survey.kind == FailureKind.TIMEOUT)
        ran = one_benchmark_runs(survey)
        for verification in (judged, ran):
            if not verification.ok:
                return _result(verification, is_late=False)
        sample = self._sample(evidence, survey)
        seconds = time.monotonic() - started
        output = "\n".join([judged.detail, ran.detail, sample])
        if not sample:
            return VerifierResult(False, FAILED, output, "no benchmark gives a sample")
        if seconds > self._timeout:
            return VerifierResult(False, TIMED_OUT, output, f"took {seconds:.0f} s of {self._timeout:.0f} s")
        return VerifierResult(True, 0, output, "")

    def _survey(self, evidence: Evidence) -> Survey | ItemFailure:
        limit = min(BENCHMARK_SECONDS[-1], self._timeout / 4)
        budget = max(self._timeout / 4, self._timeout - 2 * limit - START_SECONDS)
        try:
            return evidence.take_survey(limit=limit, budget=budget, import_limit=limit)
        except ItemFailure as failure:
            return failure

    def _sample(self, evidence: Evidence, survey: Survey) -> str:
        for benchmark in survey.benchmarks:
            if benchmark.outcome == "ran" and (said := _timed(evidence, benchmark)):
                return said
        return ""


class MultiVerifier(Verifier):
    """Several verifiers in sequence over the same evidence, up to the first failure."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        """Raises ValueError for none: an unchecked image does not pass."""
        if not verifiers:
            raise ValueError("a MultiVerifier needs at least one verifier")
        self._verifiers = tuple(verifiers)

    def judge(self, evidence: Evidence) -> VerifierResult:
        """The results as one: all that was said, and how the last one ended."""
        results: list[VerifierResult] = []
        for verifier in self._verifiers:
            results.append(verifier.judge(evidence))
            if not results[-1].ok:
                break
        return VerifierResult(
            ok=results[-1].ok,
            rc=results[-1].rc,
            stdout="\n".join(result.stdout for result in results if result.stdout),
            stderr="\n".join(result.stderr for result in results if result.stderr),
        )


@contextmanager
def _examined(image: BuiltImage | str, engine: Engine | None) -> Iterator[Evidence]:
    if isinstance(image, str):
        docker = engine if isinstance(engine, DockerEngine) else DockerEngine()
        engine, image = docker, find_image(docker.daemon, image)
    engine = engine or _engine_of(image)
    with gathering(Subject(engine, image, FolderOrigin(image.spec.base_sha, b""), run_id="verify")) as evidence:
        yield evidence


def _engine_of(image: BuiltImage) -> Engine:
    if image.engine is EngineName.DOCKER:
        return DockerEngine(daemon=DockerDaemon())
    # an image of the process engine is a folder of `<root>/images`
    return ProcessEngine(Path(image.location).parents[1])


def _bringing(facts: ImageFacts, package: str) -> list[Distribution]:
    """The distributions with a file of *package*."""
    site = site_packages(facts)
    starts = (f"{site}/{package.replace('.', '/')}/", f"{site}/{package}.")
    return [
        distribution
        for distribution in installed(facts, Area.ENVIRONMENT, site)
        if any(path.startswith(starts) and ".dist-info/" not in path for path in distribution.record)
    ]


def _timed(evidence: Evidence, benchmark: SurveyedBenchmark) -> str:
    asked = [TimedBenchmark(benchmark, benchmark.isolate, benchmark.setup_seconds)]
    (sample,) = evidence.remote.time(asked, seconds=SAMPLE_SECONDS, setting=ProcessSetting()).samples
    if isinstance(sample, NotTimed):
        return ""
    return f"{benchmark.name}: {sample.value:.6g} {benchmark.unit} of {sample.calls} calls"


def _result(verification: Verification, *, is_late: bool) -> VerifierResult:
    rc = 0 if verification.ok else TIMED_OUT if is_late else verification.rc or FAILED
    return VerifierResult(verification.ok, rc, verification.detail, verification.log_tail)
