"""Where the dataset goes, and the rule that every destination keeps: a released tag is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from formulacode_dagster.models.acceptance import Acceptance
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Correction, Release

from .card import CARD_FILE, data_path, render_card, verified_path
from .dataset import KEY, first_difference, from_parquet, rows_checksum, schema_checksum, to_parquet
from .edition import Edition
from .index import INDEX_FILE, Index, facts_of

if TYPE_CHECKING:
    import polars as pl


WAITING = "replays"
"""A column that grows after the release, and by itself makes no revision."""


@dataclass(frozen=True)
class ReleasedMonth:
    """The newest release of a month, as it was read."""

    tag: str
    frame: pl.DataFrame


class Destination(Protocol):
    """A place that keeps the dataset under tags: the Hub, or a folder. Calls block."""

    @property
    def name(self) -> str:
        """`hub:owner/name`, or the folder's path."""

    def release(
        self, month: Month, frame: pl.DataFrame, accepted: Sequence[Acceptance] = (), correction: str = ""
    ) -> Release:
        """Write, tag and read back the month; the second time with the same rows, only read it back.

        Other rows than those released are a revision, which *correction*, the reason for it, asks for: it has a tag of
        its own, and the older ones stay. The card tells its difference, and what people *accepted* of the month.

        Raises ItemFailure (`released_tag`) when the month was released with other rows and no correction is asked for,
        OutsideSystemError when the destination does not answer or is full, ConfigurationError when it refuses us.
        """

    def read(self, month: Month) -> ReleasedMonth | None:
        """The newest release of *month*; None when it was never released here. Raises as `release`."""

    def tags(self) -> Mapping[str, str]:
        """Every tag of the dataset and the revision it points to now; empty where there is no dataset yet."""


def files_of(edition: Edition, frame: pl.DataFrame, index: Index) -> dict[str, bytes]:
    """What *edition* writes, by path, given the *index* of what is there already."""
    index = index.with_month(facts_of(edition, frame))
    month = edition.month.key
    return {
        data_path(month): to_parquet(frame),
        verified_path(month): to_parquet(frame.filter(frame["verified"])),
        INDEX_FILE: index.to_json(),
        CARD_FILE: render_card(index).encode(),
    }


def read_back(
    edition: Edition, frame: pl.DataFrame, destination: str, revision: str, content: bytes, *, released_at: datetime
) -> Release:
    """The release of rows *frame* whose Parquet file, read back from its tag, is *content*; the two may differ."""
    month = edition.month
    release = from_parquet(content, f"{destination}, {data_path(month.key)} at {edition.tag}")
    made = edition.corrections[-1] if edition.corrections else None
    return Release(
        month=month.key,
        tag=edition.tag,
        number=edition.number,
        difference=made.difference if made else "",
        reason=made.reason if made else "",
        destination=destination,
        revision=revision,
        tasks=frame.height,
        task_ids=tuple(sorted(frame[KEY].to_list())),
        rows_sha256=rows_checksum(frame),
        read_back_sha256=rows_checksum(release),
        schema_sha256=schema_checksum(release),
        columns={name: str(kind) for name, kind in release.schema.items()},
        released_at=released_at,
    )


def next_edition(
    newest: Edition, frame: pl.DataFrame, destination: str, content: bytes, *, correction: str
) -> tuple[Edition, pl.DataFrame]:
    """The revision that *frame* is of *newest*, whose Parquet file is *content*; *newest* when it has the same rows.

    With it the rows of that edition: replays made since *newest* wait for a revision that somebody asks for. Raises
    ItemFailure (`released_tag`) when other rows are other and no *correction* gives a reason for that.
    """
    released = from_parquet(content, f"{destination}, {data_path(newest.month.key)} at {newest.tag}")
    waiting = () if correction.strip() else (WAITING,)
    checksums = {rows_checksum(rows.drop(waiting, strict=False)) for rows in (frame, released)}
    if released.schema == frame.schema and len(checksums) == 1:
        return newest, released
    difference = first_difference(released, frame)
    if not correction.strip():
        raise ItemFailure(
            FailureKind.RELEASED_TAG,
            f"{newest.month} was released before as {newest.tag} at {destination}, with other rows",
            why=f"a released tag is never changed, and against it {difference}",
            remedy=f"Keep the release as it is, or release a revision: fc-data run --month {newest.month} "
            "--stage published_dataset --correction WHY",
        )
    tag = newest.month.tag(newest.number + 1)
    made = Correction(tag=tag, difference=difference, reason=correction.strip())
    return Edition(newest.month, newest.accepted, (*newest.corrections, made)), frame


def edition_of(month: Month, index: Index, accepted: Sequence[Acceptance]) -> Edition:
    """The edition of *month* that *index*, read from its tag, tells of; with what is *accepted* by now."""
    released = index.month(month.key)
    return Edition(
        month, tuple(acceptance.card_line for acceptance in accepted), released.corrections if released else ()
    )
