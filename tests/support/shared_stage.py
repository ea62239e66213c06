"""Runs that share one stage, as the runner does it, and what each of them was at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from formulacode_dagster.models.items import Cost, ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, Worker
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, RunRole, Sharing, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database

MONTH, STAGE = "2026-02", Stage.IMAGES
LONG, NONE = timedelta(minutes=1), timedelta(0)
NAMES = tuple(f"Acme/{name}#{number}" for name in ("one", "two", "three") for number in range(1, 5))


def worker(name: str, lease: timedelta = LONG) -> Worker:
    return Worker(STAGE, MONTH, name, lease)


class Runs:
    """Runs of one stage that share it, and what each of them was at."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.done: list[tuple[str, str]] = []

    async def run(
        self,
        part: RunRole,
        name: str,
        names: Sequence[str] = NAMES,
        *,
        lease: timedelta = LONG,
        inputs: str = "v1",
        elsewhere: Sequence[str] = (),
        options: RunOptions = RunOptions(concurrency=2),
        at_work: Callable[[str], None] = lambda _: None,
    ) -> StageSummary:
        def work(item: WorkItem[str]) -> Outcome[str]:
            at_work(item.name)
            self.done.append((name, item.name))
            return Outcome(item.value, Cost(tokens_in=1))

        sharing = Sharing(part, worker(name, lease), look_again_seconds=0.01)
        stage_run = StageRun(self.database, STAGE, MONTH, name, options, sharing)
        items = [WorkItem(item, inputs, item, is_here=item not in elsewhere) for item in names]
        return await run_items(stage_run, ItemKind.PULL_REQUEST, items, in_thread(work), lambda *_: None)

    @property
    def entries(self) -> dict[str, str]:
        """By whom each item is said to be done."""
        with self.database.transaction() as connection:
            entries = ledger.entries_of(connection, MONTH, STAGE)
        return {entry.item: entry.run_id for entry in entries if entry.state is ItemState.DONE}

    def open(self, *names: str, by: str = "gone", lease: timedelta = LONG, inputs: str = "v1") -> Worker:
        """Share *names* as a leader does that is killed at once."""
        leader = worker(by, lease)
        with self.database.transaction() as connection:
            items = [ClaimableItem(name, inputs, name.partition("#")[0], 0.0) for name in names]
            claims.open_stage(connection, leader, by, RunOptions(), items)
        return leader

    def claim(self, by: Worker, neighbours: str = "") -> str | None:
        with self.database.transaction() as connection:
            turn = claims.claim(connection, by, neighbours=neighbours)
        return turn.item if turn else None
