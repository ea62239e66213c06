"""The integrity of releases: each recorded one is read from its destination again, and compared with its record."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release

from .checks import released_tags_untouched
from .destination import Destination, released_tables


def verify_releases(recorded: Sequence[Release], destination: Destination) -> CheckFinding:
    """Pass when the tag of each recorded release points where it did, and its rows and columns are those written.

    Raises OutsideSystemError if the destination does not answer.
    """
    tags = destination.tags()
    offenders = list(released_tags_untouched(recorded, tags).offenders)
    for release in recorded:
        if release.tag in tags:
            offenders += _differences(release, destination)
    summary = f"{len(recorded)} releases at {destination.name} are as they were written"
    if offenders:
        summary = f"releases at {destination.name} were changed; first: {offenders[0]}"
    return CheckFinding.by_offenders(summary, offenders, {"releases": float(len(recorded))})


def _differences(release: Release, destination: Destination) -> list[str]:
    try:
        found = released_tables(Month.parse(release.month), release.tag, destination.content, destination.name)
    except ItemFailure as failure:
        return [f"{release.tag}: {failure}"]
    return [
        f"{release.tag} has other {what} than were written"
        for what, written, read in (
            ("rows", release.rows_sha256, found.checksum),
            ("columns", release.schema_sha256, found.schema_checksum),
        )
        if written != read
    ]
