"""Chooses a month's images to rebuild, checks the results, and stores what a rebuild needs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from formulacode_dagster.building.engines.machines import Machine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.image import BuiltImage, InstalledDistribution
from formulacode_dagster.models.reproduction import Reproduction
from formulacode_dagster.operating.store.artifacts import REPRODUCTIONS
from formulacode_dagster.operating.store.blobs import get_blob, has_blob, put_blobs
from formulacode_dagster.sources.git.mirror import MirrorCache

from .rebuild import rebuild

SAMPLE = 1
"""Images a month that are built again: it costs a whole build without a cache."""


def rebuild_stored(
    machine: Machine, engine: Engine, cache: MirrorCache, image: BuiltImage, *, item: str
) -> Reproduction:
    """`rebuild` an image of the machine's database, and store the result; raises as `rebuild`.

    Timings on that machine wait meanwhile.
    """
    database = machine.database

    def kept(distribution: InstalledDistribution) -> Listing | None:
        with database.transaction() as connection:
            return kept_listing(connection, distribution)

    with machine.building():
        made = rebuild(engine, image, cache=cache, kept=kept, item=item)
    with database.transaction() as connection:
        REPRODUCTIONS.save(connection, [made])
    return made


def sample(month: str, items: Sequence[str], *, size: int = SAMPLE) -> tuple[str, ...]:
    """The *size* of *items* that are built again in *month*: whoever asks, and however often, the same ones."""
    return tuple(sorted(items, key=lambda item: hashlib.sha256(f"{month} {item}".encode()).digest())[:size])


def verdict(made: Sequence[Reproduction], failures: Mapping[str, str]) -> CheckFinding:
    """Pass if every rebuilt image came out the same; *failures* gives the reasons for failed rebuilds, by item.

    It blocks nothing: the first image was measured, whether or not another would come out the same.
    """
    offenders = [f"{item}: {why}" for item, why in sorted(failures.items())]
    for reproduction in made:
        if not reproduction.is_equal:
            offenders += [
                f"{reproduction.item}: {difference.kind} of {difference.name}: {difference.detail}"
                for difference in reproduction.differences
            ]
    tried, equal = len(made) + len(failures), sum(reproduction.is_equal for reproduction in made)
    return CheckFinding.by_offenders(
        f"{equal} of {tried} images that were built again came out the same" if tried else "no image to sample",
        offenders,
        {
            "rebuilt": float(tried),
            "equal": float(equal),
            "seconds": sum(reproduction.seconds for reproduction in made),
            "files": float(sum(reproduction.files for reproduction in made)),
        },
    )


def keep_listings(connection: Connection, installed: Sequence[Listing]) -> tuple[InstalledDistribution, ...]:
    """Store *installed* among the blobs, each once for all images; return the value for the image's row."""
    put_blobs(connection, "installed", [listing.text.encode() for listing in installed])
    return tuple(listing.summary for listing in installed)


def kept_listing(connection: Connection, distribution: InstalledDistribution) -> Listing | None:
    """The listing behind *distribution*; None when it was never kept. Raises FormulaCodeError when it is damaged."""
    if not has_blob(connection, distribution.sha256):
        return None
    return Listing.of(distribution, get_blob(connection, distribution.sha256).decode())
