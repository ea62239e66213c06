"""The verdicts on a month of `images`. Pure.

Passing verifications are an invariant of the build: an image with a failed one ends as a failed item, and no row is
written. A stored row can still lack one, or hold an obsolete one, if an earlier version of the code wrote it and a run
limited to some items left it in the month; and a row can have been changed since. `verifications_hold` fails in those
cases, before anything is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from formulacode_dagster.building.verification import discovery
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.image import BuiltImage

LEAST_FOUND = 0.5
"""Share of a suite's benchmarks below which an image is doubtful."""


class _Standing(StrEnum):
    """Standing of a row with respect to one verification."""

    HELD = "held"
    FAILED = "failed"
    NOT_MADE = "not made"
    UNKNOWN = "unknown"
    """The row has it, and this version of the code does not make it."""


def verifications_hold(images: Sequence[BuiltImage], names: Sequence[str] = VERIFICATION_NAMES) -> CheckFinding:
    """Pass when of every image each of *names* was verified and held, and no other was, and it names a benchmark.

    A plan without a suite has none to name.
    """
    tally: dict[str, Counter[str]] = {name: Counter() for name in names}
    offenders: list[str] = []
    sound = 0
    for image in images:
        faults = [] if image.benchmarks or not image.spec.has_suite else ["names no benchmark"]
        for name, standing, detail in _standings(image, names):
            tally.setdefault(name, Counter())[standing] += 1
            if standing is not _Standing.HELD:
                faults.append(f"{name} {standing}" + (f": {detail}" if detail else ""))
        offenders += [f"{image.spec.task_id}: {fault}" for fault in faults]
        sound += not faults
    return CheckFinding.by_offenders(
        f"{sound} of {len(images)} images hold in all {len(names)} verifications" if images else "no images this month",
        offenders,
        {"images": len(images), "sound": sound, **_benchmarks(images)},
        {name: {standing.value: counts[standing] for standing in _Standing} for name, counts in tally.items()},
    )


def suites_load(images: Sequence[BuiltImage]) -> CheckFinding:
    """Pass when every image finds at least half of the benchmarks that its suite's files have.

    An image with few of them is sound, and measures the change badly: what executes it may be among the others.
    """
    offenders = [
        f"{image.spec.task_id}: {verification.detail}"
        for image in images
        for verification in image.verifications
        if verification.name == discovery.NAME and len(image.benchmarks) < LEAST_FOUND * image.expected_benchmarks
    ]
    return CheckFinding.by_offenders(
        f"{len(images) - len(offenders)} of {len(images)} images find half of their suite or more",
        offenders,
        {"images": len(images), "doubtful": len(offenders)},
    )


def _standings(image: BuiltImage, names: Sequence[str]) -> Iterator[tuple[str, _Standing, str]]:
    """Return *image*'s standing for each of *names*, and for its other verifications: name, standing, detail."""
    made = {
        verification.name: verification
        for verification in sorted(image.verifications, key=lambda verification: not verification.ok)
    }
    for name in names:
        if name not in made:
            yield name, _Standing.NOT_MADE, ""
        else:
            yield name, _Standing.HELD if made[name].ok else _Standing.FAILED, made[name].detail
    yield from ((name, _Standing.UNKNOWN, "") for name in made if name not in names)


def _benchmarks(images: Sequence[BuiltImage]) -> dict[str, float]:
    counts = sorted(len(image.benchmarks) for image in images)
    return {"benchmarks": sum(counts), "fewest": counts[0], "median": counts[len(counts) // 2]} if counts else {}
