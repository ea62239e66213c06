"""Verdicts on published images."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import CheckFinding, repeated
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.release import PublishedImage


def every_digest_pulled(
    month: str, published: Sequence[PublishedImage], measured: Sequence[Measurement]
) -> CheckFinding:
    """Pass when every published image came back under its own digest, and is the one that was measured."""
    by_key = {(row.repository_id, row.number): row for row in measured}
    offenders: list[str] = []
    for image in published:
        measurement = by_key.get((image.repository_id, image.number))
        if not image.digest.startswith("sha256:"):
            offenders.append(f"{image.reference} has no digest")
        elif image.pulled_digest != image.digest:
            offenders.append(
                f"{image.reference} was pushed as {image.digest} and came back as {image.pulled_digest or 'nothing'}"
            )
        if measurement is None or not measurement.is_faster:
            offenders.append(f"{image.reference} was published without being measured to be faster")
        elif measurement.image_digest != image.image_digest:
            offenders.append(f"{image.reference} holds {image.image_digest}, measured was {measurement.image_digest}")
        if image.month != month:
            offenders.append(f"{image.reference} belongs to {image.month}")
    offenders += [f"{name} names two images" for name in repeated(image.reference for image in published)]
    if not published:
        summary = "nothing was published, so there is nothing to pull"
    elif offenders:
        summary = f"{len(offenders)} claims about {len(published)} published images are wrong; first: {offenders[0]}"
    else:
        summary = f"all {len(published)} published images came back by digest, as measured"
    figures = {"published": float(len(published)), "offenders": float(len(offenders))}
    return CheckFinding.by_offenders(summary, offenders, figures)
