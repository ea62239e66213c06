"""Cost of sharing a stage for its database and its workers: real runs at full speed, with empty items."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import event

from bench.scale_simulation import save_nothing
from formulacode_dagster.models.items import ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.operating.runner.claims import Worker
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, RunRole, Sharing, StageRun, WorkItem
from formulacode_dagster.operating.store.database import Database

LEASE = timedelta(seconds=60)
STAGE = Stage.PUBLISHED_IMAGES
"""A stage outside the simulation: its durations would change the expected ones."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """Cost of items of one stage, whatever they do."""

    seconds_per_item: float
    """CPU seconds of a worker: all workers did nothing else."""
    server_cpu_seconds_per_item: float
    statements_per_item: float


def server_cpu_seconds(folder: Path) -> float:
    """Seconds of the processor that the embedded Postgres in *folder* has used, its ended backends included."""
    postmaster = int((folder / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # after the name in parentheses: state, parent, …, utime, stime, cutime, cstime
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(stat.parent.name) == postmaster:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / _TICKS


class Statements:
    """Counts database queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    @contextmanager
    def of(self, database: Database) -> Iterator[Database]:
        """*database*, counted, and closed at the end."""

        def one_more(*_: object) -> None:
            with self._lock:
                self.count += 1

        event.listen(database.engine, "before_cursor_execute", one_more)
        try:
            yield database
        finally:
            database.close()


def load_of(url: str, folder: Path, month: str, workers: int, number: int) -> Load:
    """Let *workers* share *number* empty items; each has its own connections, like a process."""
    statements, is_shared = Statements(), threading.Event()
    names = [f"bench/project-{place % 40}#{place}" for place in range(number)]

    async def nothing(_: WorkItem[None]) -> Outcome[None]:
        is_shared.set()
        return Outcome()

    def run(worker: int) -> int:
        part, name = (RunRole.HELPS if worker else RunRole.LEADS), f"worker {worker}"
        sharing = Sharing(part, Worker(STAGE, month, name, LEASE), look_again_seconds=0.05)
        options = RunOptions(concurrency=1)
        if worker:
            is_shared.wait()
        with statements.of(Database(url)) as database:
            stage_run = StageRun(database, STAGE, month, name, options, sharing)
            items = [WorkItem(item, "v1", None) for item in names]
            try:
                summary = asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, nothing, save_nothing))
            finally:
                # a failed leader keeps no worker waiting
                is_shared.set()
        if not worker and summary.count(ItemState.DONE) != number:
            raise RuntimeError(f"{summary.count(ItemState.DONE)} of {number} items are done")
        return len(summary.worked)

    busy, began = server_cpu_seconds(folder), time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        worked = sum(pool.map(run, range(workers)))
    seconds = time.perf_counter() - began
    if worked != number:
        raise RuntimeError(f"{number} items were done {worked} times")
    return Load(
        seconds_per_item=workers * seconds / number,
        server_cpu_seconds_per_item=(server_cpu_seconds(folder) - busy) / number,
        statements_per_item=statements.count / number,
    )
