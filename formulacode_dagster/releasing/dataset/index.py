"""`months.json`: the content of the dataset by month, so that the card need not read every Parquet file."""

from __future__ import annotations

import bisect
import itertools
import json
import statistics
from collections import Counter

from pydantic import Field, TypeAdapter, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.grading import ReleaseGate
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Correction, ReplayNote, ReplayVerdict, standing

from .edition import Edition
from .tables import MonthTables
from .validity import Validity, validity

INDEX_FILE = "months.json"


NO_LICENSE = "not known"
_BOUNDS = (1.1, 1.25, 1.5, 2, 4, 10)
SPEEDUP_RANGES = (
    f"below {_BOUNDS[0]}×",
    *(f"{low}–{high}×" for low, high in itertools.pairwise(_BOUNDS)),
    f"{_BOUNDS[-1]}× and more",
)


def range_of(speedup: float) -> str:
    """Return the range of `SPEEDUP_RANGES` with *speedup*; a bound belongs to the range above it."""
    return SPEEDUP_RANGES[bisect.bisect_right(_BOUNDS, speedup)]


class IndexedMonth(Frozen):
    """One released month."""

    month: str
    tag: str
    tasks: int
    verified: int
    repositories: int
    replayed: int = Field(default=0, description="tasks that could be replayed, as of this release")
    confirmed: int = Field(default=0, description="of these, tasks that each of their replays confirms")
    validity: tuple[Validity, ...] = Field(default=(), description="of the replayed tasks by machine and CPU family")
    reviewed: int = Field(default=0, description="tasks whose newest review approves, as of this release")
    median_speedup: float | None = Field(description="over the month's tasks; None without tasks")
    speedups: dict[str, int] = Field(default_factory=dict, description="tasks by range of their speed-up")
    licenses: dict[str, int] = Field(default_factory=dict, description="tasks by license; empty if not recorded")
    rows_sha256: str
    schema_sha256: str
    columns: dict[str, str] = Field(default_factory=dict, description="types of the columns; empty if not recorded")
    accepted: tuple[str, ...] = Field(default=(), description="failures that people accepted")
    gate: ReleaseGate | None = Field(default=None, description="gradings of its tasks; null if not recorded")
    corrections: tuple[Correction, ...] = Field(default=(), description="its revisions, the first of them first")


class DatasetIndex(Frozen):
    """Every month of the dataset, in order."""

    months: tuple[IndexedMonth, ...] = ()

    @classmethod
    def parse(cls, content: bytes | None, where: str) -> DatasetIndex:
        """The index in *content*, empty for None; raises ItemFailure (`unreadable`) when it is malformed."""
        if content is None:
            return cls()
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            raise ItemFailure(
                FailureKind.UNREADABLE,
                f"{where} is malformed",
                why=str(error)[:300],
                remedy="Restore it from the last release's tag; nothing was written",
            ) from error

    def with_month(self, facts: IndexedMonth) -> DatasetIndex:
        """The index with this month added or replaced."""
        others = [month for month in self.months if month.month != facts.month]
        return DatasetIndex(months=tuple(sorted([*others, facts], key=lambda month: month.month)))

    def month(self, key: str) -> IndexedMonth | None:
        """Return the entry of month *key*."""
        return next((month for month in self.months if month.month == key), None)

    @property
    def reviewed(self) -> int:
        """Number of tasks that a person approved; without any there is no such config, since it could not be loaded."""
        return sum(month.reviewed for month in self.months)

    def before(self, key: str) -> IndexedMonth | None:
        """Return the entry of the last month of the dataset before *key*."""
        return max((month for month in self.months if month.month < key), key=lambda month: month.month, default=None)

    def to_json(self) -> bytes:
        """The file's content; equal indexes give equal bytes."""
        return self.model_dump_json(indent=2).encode() + b"\n"


def standing_of(notes: str) -> ReplayVerdict | None:
    """Return the overall result of the column `replays` of a row; None without any."""
    return standing(ReplayVerdict(note["verdict"]) for note in json.loads(notes))


def notes_of(notes: str) -> tuple[ReplayNote, ...]:
    """Return the replays in the column `replays` of a row."""
    return TypeAdapter(tuple[ReplayNote, ...]).validate_json(notes)


def facts_of(edition: Edition, tables: MonthTables) -> IndexedMonth:
    """The line of the index for the month of *edition* with the rows of *tables*."""
    frame = tables.tasks
    speedups = frame["speedup"].to_list()
    # a month of an older release has no such column
    licenses = frame["license"].to_list() if "license" in frame.columns else []
    replays = dict(zip(frame["task_id"], map(notes_of, frame["replays"]), strict=True))
    stands = Counter(standing(note.verdict for note in notes) for notes in replays.values())
    return IndexedMonth(
        month=edition.month.key,
        tag=edition.tag,
        tasks=frame.height,
        verified=int(frame["verified"].sum()),
        repositories=frame["repo_name"].n_unique(),
        replayed=stands[ReplayVerdict.CONFIRMED] + stands[ReplayVerdict.NOT_CONFIRMED],
        confirmed=stands[ReplayVerdict.CONFIRMED],
        validity=validity(replays),
        reviewed=sum(tables.approved),
        median_speedup=statistics.median(speedups) if speedups else None,
        speedups=dict(Counter(map(range_of, speedups))),
        licenses=dict(sorted(Counter(name or NO_LICENSE for name in licenses).items())),
        rows_sha256=tables.checksum,
        schema_sha256=tables.schema_checksum,
        columns=tables.columns,
        accepted=edition.accepted,
        gate=tables.gate,
        corrections=edition.corrections,
    )
