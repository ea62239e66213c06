"""Verdicts on releases: rows that read back, a stable schema, tags that stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formulacode_dagster.models.check import CheckFinding, repeated
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release

from .parquet import changed_columns


def newest_of(releases: Iterable[Release]) -> dict[str, Release]:
    """Return the newest release of each month: the last revision, if there are any."""
    return {release.month: release for release in sorted(releases, key=lambda release: release.number)}


def reads_back_equal(month: str, releases: Sequence[Release]) -> CheckFinding:
    """Pass when the rows read back from each of the month's tags are those written; also when nothing was released."""
    offenders: list[str] = []
    for release in releases:
        if release.read_back_sha256 != release.rows_sha256:
            offenders.append(f"{release.tag} at {release.destination} reads back as other rows than were written")
        if release.month != month:
            offenders.append(f"{release.tag} belongs to {release.month}")
        elif release.tag != Month.parse(month).tag(release.number):
            offenders.append(f"{month} was released as {release.tag}")
        if release.tasks != len(release.task_ids):
            offenders.append(f"{release.tag} says {release.tasks} tasks and names {len(release.task_ids)}")
        if release.number and not (release.difference and release.reason):
            offenders.append(f"{release.tag} has no correction with a reason")
    offenders += [f"{tag} was released twice" for tag in repeated(release.tag for release in releases)]
    newest = newest_of(releases).get(month)
    tasks = newest.tasks if newest else 0
    if not releases:
        summary = "nothing was released, so there is nothing to read back"
    elif offenders or newest is None:
        summary = f"the release differs from its record: {offenders[0]}"
    else:
        summary = f"{tasks} tasks read back from {newest.tag} as written"
    figures = {"tasks": float(tasks), "offenders": float(len(offenders))}
    return CheckFinding.by_offenders(summary, offenders, figures)


def schema_and_ids_stable(month: str, releases: Sequence[Release], others: Sequence[Release]) -> CheckFinding:
    """Pass when no column was changed or dropped since any earlier release, and no task id is used twice.

    *releases* are those of *month*, *others* those of other months; their destination matters. Columns may be added. An
    id counts if it is in the newest release of its month.
    """
    offenders: list[str] = []
    newest = newest_of(releases).get(month)
    if newest is not None:
        there = [other for other in (*releases, *others) if other.destination == newest.destination]
        earlier = sorted((other for other in there if other.tag != newest.tag), key=lambda other: other.released_at)
        for other in earlier:
            first, later = sorted((other, newest), key=lambda release: release.released_at)
            offenders += [f"{other.tag}: {fault}" for fault in _broken_columns(first, later)]
        offenders += [f"{task} appears twice in {month}" for task in repeated(newest.task_ids)]
        mine = set(newest.task_ids)
        for other in newest_of(other for other in others if other.destination == newest.destination).values():
            offenders += [f"{task} is also a task of {other.month}" for task in other.task_ids if task in mine]
    if not releases:
        summary = "nothing was released, so nothing could change"
    elif offenders:
        summary = f"{len(offenders)} conflicts with other releases; first: {offenders[0]}"
    else:
        summary = f"no column of {len(others)} other releases is changed or gone, and no task id appears twice"
    figures = {"other_releases": float(len(others)), "offenders": float(len(offenders))}
    return CheckFinding.by_offenders(summary, offenders, figures)


def _broken_columns(first: Release, later: Release) -> list[str]:
    """Columns of the *first* release that the *later* one has not, or has with another type."""
    if not first.columns or not later.columns:
        # a release without recorded columns has only their checksum
        return [] if first.schema_sha256 == later.schema_sha256 else ["released with another schema"]
    return changed_columns(first.columns, later.columns)


def released_tags_untouched(recorded: Sequence[Release], tags_found: Mapping[str, str]) -> CheckFinding:
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
    return CheckFinding.by_offenders(summary, offenders, figures)
