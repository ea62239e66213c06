"""Where the dataset goes, and the rule that every destination keeps: a released tag is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from formulacode_dagster.models.acceptance import Acceptance
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Release

from .card import CARD_FILE, data_path, render_card, verified_path
from .dataset import KEY, first_difference, from_parquet, rows_checksum, schema_checksum, to_parquet
from .index import INDEX_FILE, Index, facts_of

if TYPE_CHECKING:
    import polars as pl


class Destination(Protocol):
    """A place that keeps the dataset under tags: the Hub, or a folder. Calls block."""

    @property
    def name(self) -> str:
        """`hub:owner/name`, or the folder's path."""

    def release(self, month: Month, frame: pl.DataFrame, accepted: Sequence[Acceptance] = ()) -> Release:
        """Write, tag and read back the month; the second time with the same rows, only read it back.

        The card tells what people *accepted* of it.

        Raises ItemFailure (`released_tag`) when the month was released with other rows, OutsideSystemError when the
        destination does not answer or is full, ConfigurationError when it refuses us.
        """

    def tags(self) -> Mapping[str, str]:
        """Every tag of the dataset and the revision it points to now; empty where there is no dataset yet."""


def files_of(month: Month, frame: pl.DataFrame, index: Index, accepted: Sequence[Acceptance]) -> dict[str, bytes]:
    """What a release of *month* writes, by path, given the *index* of what is there already."""
    index = index.with_month(facts_of(month, frame, accepted))
    return {
        data_path(month.key): to_parquet(frame),
        verified_path(month.key): to_parquet(frame.filter(frame["verified"])),
        INDEX_FILE: index.to_json(),
        CARD_FILE: render_card(index).encode(),
    }


def read_back(
    month: Month, frame: pl.DataFrame, destination: str, revision: str, content: bytes, *, released_at: datetime
) -> Release:
    """The release of *frame* whose Parquet file, read back from its tag, is *content*; the two may differ."""
    found = from_parquet(content, f"{destination}, {data_path(month.key)} at {month.release}")
    return Release(
        month=month.key,
        tag=month.release,
        destination=destination,
        revision=revision,
        tasks=frame.height,
        task_ids=tuple(sorted(frame[KEY].to_list())),
        rows_sha256=rows_checksum(frame),
        read_back_sha256=rows_checksum(found),
        schema_sha256=schema_checksum(found),
        released_at=released_at,
    )


def require_unchanged(month: Month, frame: pl.DataFrame, destination: str, content: bytes) -> None:
    """Raise ItemFailure (`released_tag`) unless the month's earlier release, its Parquet file being *content*, has the
    rows of *frame*.
    """
    released = from_parquet(content, f"{destination}, {data_path(month.key)} at {month.release}")
    if released.schema == frame.schema and rows_checksum(released) == rows_checksum(frame):
        return
    raise ItemFailure(
        FailureKind.RELEASED_TAG,
        f"{month.key} was released before as {month.release} at {destination}, with other rows",
        why=f"a released tag is never changed, and against it {first_difference(released, frame)}",
        remedy="Keep the release as it is, or release to another dataset (HF_DATASET)",
    )
