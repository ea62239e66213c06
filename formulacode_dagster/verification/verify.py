"""Verifying an image, one verification after the other, up to the first that does not hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.engines.protocol import Engine
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, Verification
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.suites.remote import Survey

from .evidence import Subject, gathering
from .facts import ImageFacts
from .origin import MirrorOrigin
from .verifications import VERIFICATIONS

TAIL_CHARACTERS = 20_000
OURS = frozenset({FailureKind.COLLECTOR, FailureKind.IMAGE_GONE, FailureKind.MIRROR})
"""Kinds of failure that say nothing about the image."""

Listener = Callable[[Verification], None]
"""Called with each verification as it is made."""


@dataclass(frozen=True)
class ImageVerification:
    """What was verified of an image, up to the first that does not hold."""

    verifications: tuple[Verification, ...]
    benchmarks: tuple[str, ...]
    """Names of the benchmarks that were found."""
    facts: ImageFacts
    """What the one pass over the image's files told."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Modules and classes of the suite that could not be loaded, and why."""

    @property
    def failure(self) -> Verification | None:
        """The verification that does not hold."""
        return next((verification for verification in self.verifications if not verification.ok), None)


def verify_image(
    engine: Engine,
    image: BuiltImage,
    *,
    mirror: Path,
    pr: PullRequest,
    run_id: str,
    suite: SuiteFiles = BASE_SUITE,
) -> ImageVerification:
    """Make all verifications of *image*, in their order, up to the first that does not hold.

    *suite* is laid over the checkout of the session, where it is not the one of the base commit.

    Raises OutsideSystemError when the engine or the package index is gone, ItemFailure (`mirror`) when the mirror lacks
    the commits.
    """
    return verify(Subject(engine, image, MirrorOrigin(mirror, pr), run_id, suite))


def verify(subject: Subject, listener: Listener | None = None) -> ImageVerification:
    """As `verify_image`, of any *subject*."""
    with gathering(subject) as evidence:
        made: list[Verification] = []
        for name, judge in VERIFICATIONS.items():
            started = time.monotonic()
            try:
                found = judge(evidence)
            except ItemFailure as failure:
                if failure.kind in OURS:
                    raise
                # the code of the image ended the session, changed the harness, answered nonsense
                found = Verification(name=name, ok=False, detail=str(failure), log_tail=failure.log_tail)
            seconds = round(time.monotonic() - started, 2)
            found = found.model_copy(update={"seconds": seconds, "log_tail": found.log_tail[-TAIL_CHARACTERS:]})
            made.append(found)
            if listener is not None:
                listener(found)
            if not found.ok:
                break
        asked = {verification.name for verification in made}
        survey = evidence.survey if "benchmarks" in asked else None
        if not isinstance(survey, Survey):
            return ImageVerification(tuple(made), (), evidence.facts)
        return ImageVerification(tuple(made), survey.discovered, evidence.facts, survey.lost)
