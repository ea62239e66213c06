"""Verifies an image, one verification after the other, up to the first failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import Verification
from formulacode_dagster.models.reasons import FailureKind

from .evidence import Subject, gathering
from .facts import ImageFacts
from .verifications import VERIFICATIONS

TAIL_CHARACTERS = 20_000
OURS = frozenset({FailureKind.COLLECTOR, FailureKind.IMAGE_GONE, FailureKind.MIRROR})
"""Kinds of failure that say nothing about the image."""

Listener = Callable[[Verification], None]
"""Called with each verification as it is made."""


@dataclass(frozen=True)
class ImageVerification:
    """Results of an image's verifications, up to the first failure."""

    verifications: tuple[Verification, ...]
    benchmarks: tuple[str, ...]
    """Names of the benchmarks that were found."""
    expected_benchmarks: int
    """How many should be, by the suite's files."""
    facts: ImageFacts
    """Facts from the one pass over the image's files."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Modules and classes of the suite that could not be loaded, and why."""

    @property
    def failure(self) -> Verification | None:
        """The failed verification."""
        return next((verification for verification in self.verifications if not verification.ok), None)


def verify(subject: Subject, listener: Listener | None = None) -> ImageVerification:
    """Make all verifications of *subject*, in their order, up to the first failure.

    Raises OutsideSystemError when the engine or the package index is gone, ItemFailure (`mirror`) when the mirror lacks
    the commits.
    """
    with gathering(subject) as evidence:
        made: list[Verification] = []
        for name, judge in VERIFICATIONS.items():
            started = time.monotonic()
            try:
                judged = judge(evidence)
            except ItemFailure as failure:
                if failure.kind in OURS:
                    raise
                # the code of the image ended the session, changed the harness, answered nonsense
                judged = Verification(name=name, ok=False, detail=str(failure), log_tail=failure.log_tail)
            seconds = round(time.monotonic() - started, 2)
            judged = judged.model_copy(update={"seconds": seconds, "log_tail": judged.log_tail[-TAIL_CHARACTERS:]})
            made.append(judged)
            if listener is not None:
                listener(judged)
            if not judged.ok:
                break
        asked = {verification.name for verification in made}
        survey = evidence.survey if "benchmarks" in asked else None
        if not isinstance(survey, Survey):
            return ImageVerification(tuple(made), (), 0, evidence.facts)
        expected = len(evidence.reading.certain)
        return ImageVerification(tuple(made), survey.discovered, expected, evidence.facts, survey.lost)
