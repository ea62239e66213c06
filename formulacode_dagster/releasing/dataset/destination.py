"""Destinations of the dataset, and the rule that each follows: a released tag is never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Correction, Release

from .card import CARD_FILE, render_card
from .croissant import CROISSANT_FILE, croissant
from .edition import Edition, newest_number
from .gate import GATE_FILE, render_gate
from .index import INDEX_FILE, DatasetIndex, facts_of
from .parquet import KEY, changed_columns, from_parquet
from .tables import MonthTables, data_path, first_difference, read_tables

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ReleasedMonth:
    """The newest release of a month, as it was read; only its tasks."""

    tag: str
    frame: pl.DataFrame


class Destination(Protocol):
    """A place that keeps the dataset under tags: the Hub, or a folder. Calls block."""

    @property
    def name(self) -> str:
        """`hub:owner/name`, or the folder's path."""

    @property
    def url(self) -> str:
        """URL to clone it from; `` for a folder."""

    def release(
        self, month: Month, tables: MonthTables, accepted: Sequence[Acceptance] = (), correction: str = ""
    ) -> Release:
        """Write, tag and read back the month; the second time with the same rows, only read it back.

        Rows that differ from the released ones are a revision, which needs a *correction*, its reason: it has a
        separate tag, and the older ones stay. The card shows its difference, and what people *accepted* of the month.

        Raises ItemFailure (`released_tag`) if the month was released with other rows and no correction is given,
        OutsideSystemError if the destination does not answer or is full, ConfigurationError if it refuses us.
        """

    def read(self, month: Month) -> ReleasedMonth | None:
        """The newest release of *month*; None when it was never released here. Raises as `release`."""

    def require_write(self) -> None:
        """Raise ConfigurationError without write permission, OutsideSystemError without an answer."""

    def tags(self) -> Mapping[str, str]:
        """Return every tag of the dataset and its revision; empty if there is no dataset yet."""

    def content(self, path: str, tag: str = "") -> bytes | None:
        """Return the file at *path* as of *tag*, or its current version; None if there is none."""


def files_of(edition: Edition, tables: MonthTables, index: DatasetIndex, url: str = "") -> dict[str, bytes]:
    """Return the files of *edition* for a destination at *url*, by path, given the *index* of the existing ones.

    Raises ItemFailure (`schema_changed`) if a reader of the existing files could not read it.
    """
    for month in index.months:
        if broken := changed_columns(month.columns, tables.columns):
            raise ItemFailure(
                FailureKind.SCHEMA_CHANGED,
                f"{edition.tag} would break readers of {month.tag}",
                why=f"columns may be added, never changed or dropped, and {'; '.join(broken[:5])}",
                remedy="Release with a version of this platform that writes those columns; nothing was written",
            )
    index = index.with_month(facts_of(edition, tables))
    return {
        **tables.files(edition.month.key),
        INDEX_FILE: index.to_json(),
        CARD_FILE: render_card(index).encode(),
        GATE_FILE: render_gate(index).encode(),
        CROISSANT_FILE: croissant(index, url),
    }


Read = Callable[[str, str], bytes | None]
"""`Destination.content`."""


def released_tables(month: Month, tag: str, read: Read, where: str) -> MonthTables:
    """The tables of *month* under *tag*; raises as `released_tasks` and `read_tables`."""
    tasks = released_tasks(month, tag, read, where)
    return read_tables(month, lambda path: read(path, tag), tasks, f"{where} at {tag}")


def released_tasks(month: Month, tag: str, read: Read, where: str) -> bytes:
    """Return the Parquet file of the tasks of *month* under *tag*; raises OutsideSystemError if there is none."""
    tasks = read(data_path(month.key), tag)
    if tasks is None:
        raise OutsideSystemError(
            "dataset",
            f"{data_path(month.key)} is not in {where} at {tag}",
            why="a tag of that name exists that no release of ours made",
            remedy="Remove the tag if no user depends on it, or release to another dataset (HF_DATASET)",
        )
    return tasks


def read_back(
    edition: Edition,
    tables: MonthTables,
    released: MonthTables,
    *,
    destination: str,
    revision: str,
    released_at: datetime,
) -> Release:
    """The release of *tables*, which read back from its tag are *released*; the two may differ."""
    made = edition.corrections[-1] if edition.corrections else None
    return Release(
        month=edition.month.key,
        tag=edition.tag,
        number=edition.number,
        difference=made.difference if made else "",
        reason=made.reason if made else "",
        destination=destination,
        revision=revision,
        tasks=tables.tasks.height,
        task_ids=tuple(sorted(tables.tasks[KEY].to_list())),
        rows_sha256=tables.checksum,
        read_back_sha256=released.checksum,
        schema_sha256=released.schema_checksum,
        columns=released.columns,
        released_at=released_at,
    )


def next_edition(
    newest: Edition, tables: MonthTables, destination: str, released: MonthTables, *, correction: str
) -> tuple[Edition, MonthTables]:
    """The revision that *tables* are of *newest*, which was *released*; *newest* when they are the same rows.

    With it the rows of that edition: replays made since *newest* wait for a revision that somebody asks for. Raises
    ItemFailure (`released_tag`) when other rows are other and no *correction* gives a reason for that.
    """
    pair = (tables, released) if correction.strip() else (tables.settled(), released.settled())
    if released.columns == tables.columns and pair[0].checksum == pair[1].checksum:
        return newest, replace(released, gate=tables.gate)
    difference = first_difference(released, tables)
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
    return Edition(newest.month, newest.accepted, (*newest.corrections, made)), tables


def newest_release(month: Month, tags: Iterable[str], read: Read, where: str) -> ReleasedMonth | None:
    """Return the newest release of *month* among *tags*, by *read*; None without one. Raises as `released_tasks`."""
    number = newest_number(month, tags)
    if number is None:
        return None
    tag = month.tag(number)
    content = released_tasks(month, tag, read, where)
    return ReleasedMonth(tag, from_parquet(content, f"{where}, {data_path(month.key)} at {tag}"))


def edition_to_release(
    month: Month,
    tables: MonthTables,
    tags: Iterable[str],
    read: Read,
    where: str,
    accepted: Sequence[Acceptance],
    correction: str,
) -> tuple[Edition, MonthTables, bool]:
    """Return the edition and rows under which *tables* are released, and whether they still have to be written.

    *read* gives the files of the destination *where*, which has *tags*. Raises as `next_edition` and `released_tables`.
    """
    number = newest_number(month, tags)
    if number is None:
        return edition_of(month, DatasetIndex(), accepted), tables, True
    tag = month.tag(number)
    newest = edition_of(month, DatasetIndex.parse(read(INDEX_FILE, tag), f"{where}, {INDEX_FILE} at {tag}"), accepted)
    released = released_tables(month, tag, read, where)
    edition, rows = next_edition(newest, tables, where, released, correction=correction)
    return edition, rows, edition is not newest


def edition_of(month: Month, index: DatasetIndex, accepted: Sequence[Acceptance]) -> Edition:
    """Return the edition of *month* that *index*, read from its tag, describes; with what is *accepted* by now."""
    released = index.month(month.key)
    return Edition(
        month, tuple(acceptance.card_line for acceptance in accepted), released.corrections if released else ()
    )
