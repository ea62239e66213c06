"""Inputs and outputs of the runner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, Rejection
from formulacode_dagster.models.items import Cost, ItemKind, ItemState, LedgerEntry, RunOptions, Stage, repository_of
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import MonthTotal, Spent, spending_of

from .claims import Worker
from .progress import listener

T = TypeVar("T")
R = TypeVar("R")


class RunRole(StrEnum):
    """Role of a run in a stage that several runs share."""

    LEADS = "leads"
    """Decides what is to be done, processes items, and ends when all are finished."""
    JOINS = "joins"
    """Came while another leads: works with it, and ends when all is finished."""
    HELPS = "helps"
    """Processes items as long as some are unclaimed."""


@dataclass(frozen=True)
class Sharing:
    """A run's part in a stage that several share, and the name under which it claims items."""

    part: RunRole
    worker: Worker
    look_again_seconds: float = 1.0
    """Seconds between two checks whether items of others have become free or are finished."""


@dataclass(frozen=True)
class StageRun:
    """One materialization: stage, month, run, options."""

    database: Database
    stage: Stage
    month: str
    run_id: str
    options: RunOptions = RunOptions()
    sharing: Sharing | None = None
    """None for a run without helpers."""
    continues: frozenset[str] = frozenset()
    """Runs that this run continues: forced items that one of them has finished are not repeated."""
    total: MonthTotal = field(default_factory=MonthTotal, compare=False, repr=False)
    """The cost of the month, as calls to models add to it."""

    def note(self, text: str) -> None:
        """Report a line about the stage as a whole."""
        listener().note(self.stage, text)

    def warn(self, text: str) -> None:
        """Report a line that stays in view."""
        listener().warn(self.stage, text)

    def spent(self) -> Cost:
        """Return the cost of the month so far, over all stages and runs."""
        with self.database.transaction() as connection:
            return Cost.total(spending_of(connection, self.month).values())

    def book(self, cost: Cost) -> Cost:
        """Record the cost of a call to a model; returns the cost of the month by then."""
        return self.total.book(self.database, Spent(self.month, self.stage, self.run_id, cost))


@dataclass(frozen=True)
class WorkItem(Generic[T]):
    """One item of a stage: its name, the fingerprint of its inputs, and the inputs."""

    name: str
    inputs: str
    value: T
    shared_with: str = ""
    """Common property of items that one worker should process; empty: the repository."""
    is_here: bool = True
    """True if its inputs are on this machine; runs that share a stage leave other items to others."""

    @property
    def neighbours(self) -> str:
        """Equal for items that are better done by one worker."""
        return self.shared_with or self.repository

    @property
    def repository(self) -> str:
        """`owner/repo`."""
        return repository_of(self.name)

    @property
    def kind(self) -> ItemKind:
        """Kind of the item: repository, pull request, or a step of the stage."""
        return ItemKind.of(self.name)


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """Result of one item in a stage. A rejection may still have a value worth storing (samples, a verdict)."""

    value: R | None = None
    cost: Cost = Cost()
    detail: str = ""
    log: str = ""
    rejection: Rejection | None = None


Work = Callable[[WorkItem[T]], Awaitable[Outcome[R]]]
"""Does one item. Raises Rejection, ItemFailure or NotAsked for it; OutsideSystemError or ConfigurationError, with which
no other item would fare better, to stop the stage."""

Finish = Callable[[WorkItem[T], Outcome[R] | Exception], None]
"""Reports how one item of a batch ended: with the value or error that `Work` would give for it."""

Save = Callable[[Connection, Sequence[R]], None]
"""Writes values inside the transaction that also records them."""


@dataclass(frozen=True)
class BatchWork(Generic[T, R]):
    """Processes many items in one call, if that is cheaper than one by one."""

    work: Callable[[Sequence[WorkItem[T]], Finish[T, R]], Awaitable[None]]
    """Finishes each item as soon as its result is known. An error applies to all items it left open."""
    size: int | None = None
    """Items in a batch; None for all that are pending."""


@dataclass(frozen=True)
class StageSummary:
    """Result of one materialization of a stage, and the state of the month after it."""

    worked: tuple[LedgerEntry, ...] = ()
    unchanged: int = 0
    would_do: tuple[str, ...] = ()
    dry_run: bool = False
    standing: tuple[LedgerEntry, ...] = field(default=(), repr=False)
    counts: Mapping[str, int] = field(default_factory=dict)
    """Figures of this stage only, by name."""

    def with_counts(self, **counts: int) -> StageSummary:
        """Return this summary with figures of the stage."""
        return replace(self, counts={**self.counts, **counts})

    def after(self, first: StageSummary) -> StageSummary:
        """Return this summary with the work of *first*, an earlier step of the same stage, added to it."""
        return replace(
            self,
            worked=(*first.worked, *self.worked),
            unchanged=first.unchanged + self.unchanged,
            would_do=(*first.would_do, *self.would_do),
        )

    @property
    def cost(self) -> Cost:
        """Cost of this materialization."""
        return Cost.total(entry.cost for entry in self.worked)

    def require_done(self) -> None:
        """Raise the failure of a required item; a dry run has tried nothing."""
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


def require_reason(options: RunOptions) -> None:
    """Raise ConfigurationError if a measurement would be forced without a reason."""
    if options.force and not options.reason.strip() and not options.dry_run:
        raise ConfigurationError(
            "a forced measurement is stored with its reason, and none is given",
            remedy='Give --reason "…", in the launchpad `reason`, or force only another stage',
        )
