"""The asset checks of `images`: what a month's images must all have been verified for."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage

OFFENDERS = 50


def declared_commit(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """Every image holds the base commit, whole and unchanged."""
    return _verdict("declared_commit", "declared_commit", "at the declared commit", month, images)


def imports(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """In every image the package and its compiled extensions import."""
    return _verdict("imports", "imports", "importable", month, images)


def benchmarks_discovered(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """Every image has at least one benchmark."""
    verdict = _verdict("benchmarks_discovered", "benchmarks", "with benchmarks", month, images, needs_benchmarks=True)
    counts = sorted(len(image.benchmarks) for image in images)
    if not counts:
        return verdict
    figures = {"benchmarks": float(sum(counts)), "fewest": float(counts[0]), "median": float(counts[len(counts) // 2])}
    return verdict.model_copy(update={"figures": verdict.figures | figures})


def one_benchmark_runs(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """In every image at least one benchmark runs to its end and gives a time."""
    return _verdict("one_benchmark_runs", "one_benchmark_runs", "with a benchmark that runs", month, images)


def tests_collect(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """In every image the repository's own tests collect, as far as the package is to blame."""
    return _verdict("tests_collect", "tests_collect", "whose tests collect", month, images)


def nothing_planted(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """No image holds code that runs unasked or stands in for another."""
    return _verdict("nothing_planted", "nothing_planted", "with nothing planted", month, images)


def no_credentials(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """No image holds a token, a key or a password."""
    return _verdict("no_credentials", "no_credentials", "without a credential", month, images)


def oracle_absent(month: str, images: Sequence[BuiltImage]) -> GateVerdict:
    """No image holds anything of the pull request's own change."""
    return _verdict("oracle_absent", "oracle_absent", "without the oracle", month, images)


def _verdict(
    check: str,
    verification: str,
    being: str,
    month: str,
    images: Sequence[BuiltImage],
    *,
    needs_benchmarks: bool = False,
) -> GateVerdict:
    """Pass when *verification* was made for every image and held; one that was never made counts as failed."""
    offenders = []
    for image in images:
        made = {one.name: one for one in image.verifications}
        if verification not in made:
            offenders.append(f"{image.spec.task_id}: not verified")
        elif not made[verification].ok:
            offenders.append(f"{image.spec.task_id}: {made[verification].detail}")
        elif needs_benchmarks and not image.benchmarks:
            offenders.append(f"{image.spec.task_id}: no benchmark is named")
    good = len(images) - len(offenders)
    return GateVerdict(
        stage=Stage.IMAGES,
        month=month,
        check=check,
        passed=not offenders,
        blocking=True,
        summary=f"{good} of {len(images)} images {being}" if images else "no images this month",
        offenders=tuple(offenders[:OFFENDERS]),
        figures={"images": float(len(images)), "offenders": float(len(offenders))},
    )
