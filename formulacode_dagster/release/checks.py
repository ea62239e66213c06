"""The verdicts on what left the house: images that can be pulled, rows that read back, tags that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import PublishedImage, Release


def every_digest_pulled(month: str, published: Sequence[PublishedImage], measured: Sequence[Measurement]) -> Judgement:
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
    offenders += [f"{name} names two images" for name in _repeated(image.reference for image in published)]
    if not published:
        summary = "nothing was published, so there is nothing to pull"
    elif offenders:
        summary = f"{len(offenders)} claims about {len(published)} published images do not hold; first: {offenders[0]}"
    else:
        summary = f"all {len(published)} published images came back by digest, as measured"
    figures = {"published": float(len(published)), "offenders": float(len(offenders))}
    return Judgement.by_offenders(summary, offenders, figures)


def reads_back_equal(month: str, releases: Sequence[Release]) -> Judgement:
    """Pass when the month's rows, read back from its tag, are the ones written; also when nothing was released."""
    offenders: list[str] = []
    for release in releases:
        if release.read_back_sha256 != release.rows_sha256:
            offenders.append(f"{release.tag} at {release.destination} reads back as other rows than were written")
        if release.month != month:
            offenders.append(f"{release.tag} belongs to {release.month}")
        elif release.tag != Month.parse(month).release:
            offenders.append(f"{month} was released as {release.tag}")
        if release.tasks != len(release.task_ids):
            offenders.append(f"{release.tag} says {release.tasks} tasks and names {len(release.task_ids)}")
    if len(releases) > 1:
        offenders.append(f"{month} was released {len(releases)} times")
    tasks = sum(release.tasks for release in releases)
    if not releases:
        summary = "nothing was released, so there is nothing to read back"
    elif offenders:
        summary = f"the release is not what it says: {offenders[0]}"
    else:
        summary = f"{tasks} tasks read back from {releases[0].tag} as written"
    figures = {"tasks": float(tasks), "offenders": float(len(offenders))}
    return Judgement.by_offenders(summary, offenders, figures)


def schema_and_ids_stable(month: str, releases: Sequence[Release], others: Sequence[Release]) -> Judgement:
    """Pass when the month has the schema of every other release at its
    destination, and none of its task ids is used twice, in this month or another.
    """
    offenders: list[str] = []
    for release in releases:
        there = [other for other in others if other.destination == release.destination]
        different = [other for other in there if other.schema_sha256 != release.schema_sha256]
        offenders += [f"{other.month} was released with another schema" for other in different]
        offenders += [f"{task} appears twice in {month}" for task in _repeated(release.task_ids)]
        mine = set(release.task_ids)
        offenders += [
            f"{task} is also a task of {other.month}" for other in there for task in other.task_ids if task in mine
        ]
    if not releases:
        summary = "nothing was released, so nothing could change"
    elif offenders:
        summary = f"{len(offenders)} conflicts with other releases; first: {offenders[0]}"
    else:
        summary = f"the schema is that of {len(others)} other releases, and no task id appears twice"
    figures = {"other_releases": float(len(others)), "offenders": float(len(offenders))}
    return Judgement.by_offenders(summary, offenders, figures)


def released_tags_untouched(recorded: Sequence[Release], tags_found: Mapping[str, str]) -> Judgement:
    """Pass when every tag ever released still points to the revision recorded at its release."""
    offenders = [
        f"{release.tag} is gone from {release.destination}"
        if release.tag not in tags_found
        else f"{release.tag} points to {tags_found[release.tag]}, it was released as {release.revision}"
        for release in recorded
        if tags_found.get(release.tag) != release.revision
    ]
    if not recorded:
        summary = "no tag was ever released there"
    elif offenders:
        summary = f"{len(offenders)} of {len(recorded)} released tags were changed; first: {offenders[0]}"
    else:
        summary = f"all {len(recorded)} released tags point where they did"
    figures = {"tags": float(len(recorded)), "offenders": float(len(offenders))}
    return Judgement.by_offenders(summary, offenders, figures)


def _repeated(values: Iterable[str]) -> list[str]:
    return sorted(value for value, count in Counter(values).items() if count > 1)
