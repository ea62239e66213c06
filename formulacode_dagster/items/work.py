"""What goes into the runner and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.store.database import Database

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class StageRun:
    """One materialization: which stage of which month, by whom, limited to what."""

    database: Database
    stage: Stage
    month: str
    run_id: str
    options: RunOptions = RunOptions()


@dataclass(frozen=True)
class WorkItem(Generic[T]):
    """One item of a stage: its name, the fingerprint of its inputs, and the inputs."""

    name: str
    inputs: str
    value: T
    always: bool = False
    """Whether it is part of every run, whatever the run was limited to."""

    @property
    def repository(self) -> str:
        """`owner/repo`."""
        return self.name.partition("#")[0]


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """What a stage made of one item. A rejection may still carry a value worth keeping (samples, a verdict)."""

    value: R | None = None
    cost: Cost = Cost()
    detail: str = ""
    log: str = ""
    rejection: Rejection | None = None


Work = Callable[[WorkItem[T]], Awaitable[Outcome[R]]]
"""Does one item. Raises Rejection, ItemFailure or NotAsked for it; OutsideSystemError or ConfigurationError, with which
no other item would fare better, to stop the stage."""

Finish = Callable[[WorkItem[T], Outcome[R] | Exception], None]
"""Says how one item of a batch ended: with what `Work` would return or raise for it alone."""

Save = Callable[[Connection, Sequence[R]], None]
"""Writes values inside the transaction that also records them."""


@dataclass(frozen=True)
class BatchWork(Generic[T, R]):
    """Does many items at once, where that is cheaper than one by one."""

    work: Callable[[Sequence[WorkItem[T]], Finish[T, R]], Awaitable[None]]
    """Finishes each item as soon as it is known how it ends. What it raises is raised for all that it left open."""
    size: int | None = None
    """Items in a batch; None for all that are pending."""


@dataclass(frozen=True)
class StageSummary:
    """What one materialization of a stage did, and where the month stands after it."""

    worked: tuple[LedgerEntry, ...] = ()
    unchanged: int = 0
    would_do: tuple[str, ...] = ()
    dry_run: bool = False
    standing: tuple[LedgerEntry, ...] = field(default=(), repr=False)

    @property
    def cost(self) -> Cost:
        """What this materialization consumed."""
        return Cost.total(entry.cost for entry in self.worked)

    def require_done(self) -> None:
        """Raise the failure of a stage's only item, where the stage cannot do without it; a dry run tried nothing."""
        for entry in () if self.dry_run else self.standing:
            if entry.state is ItemState.FAILED:
                raise ItemFailure(FailureKind(entry.reason), entry.detail, log_tail=entry.log_tail)

    def count(self, state: ItemState) -> int:
        """Items of the month in *state*, whichever run brought them there."""
        return sum(entry.state is state for entry in self.standing)

    @property
    def reasons(self) -> dict[str, int]:
        """Reasons of rejections and failures of the month, most frequent first."""
        counted = Counter(entry.reason for entry in self.standing if entry.state is not ItemState.DONE and entry.reason)
        return dict(counted.most_common())
