"""Scaling of a month of 20,000 pull requests over workers: makespan against its bound, and the cost of the queue.

* **Makespan**: 500 tasks on 1, 4 and 16 workers, with seconds that real pull requests took (`scale_recorded.tsv`).
  Time is virtual; claims, order and results are the platform's own, on an embedded Postgres that holds the month's
  ledger. The bound is the larger of the longest task alone and all work divided by the workers; neither barriers
  between stages nor starting helpers are in it.
* **Overhead**: real runs at full speed with items that take no time: the worst that workers can do to the database and
  to each other. Starts of helper runs, as virtual seconds, are added.
* **Backfill**: Dagster's daemon plans ten years of months, as launched in the UI, into a queue that launches nothing:
  with its storage in Postgres, as deployments have it, which has the target, and in SQLite.

Intake and publishing are left out: they wait for GitHub, a model and a registry. Needs no network. The last line is
JSON; the exit code is 1 if a target is missed.

python -m bench.scale
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from bench.embedded_server import stop
from bench.scale_backfill import database_for_dagster, planning_seconds
from bench.scale_load import LEASE, Load, load_of, server_cpu_seconds
from bench.scale_month import Bound, Task, bound_of, recorded, tasks_of_a_month
from bench.scale_simulation import STAGES, START_SECONDS, ImageStore, Simulation
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.runner.queues import RENEWALS_A_LEASE
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from formulacode_dagster.orchestration.helpers import LOOK_SECONDS

MONTH, MONTH_BEFORE = "2026-02", "2026-01"
FIRST_YEAR = 2015
SEED = 1
WITHIN = 1.15
"""Times the bound that a makespan may be."""
OVERHEAD = 0.02
"""Limit of the overhead of sharing, as a share of a task's time."""
PLANNED_WITHIN = 60.0
"""Seconds in which a backfill of ten years is planned."""
KNOWN_BEFORE = 3
"""Items of each repository in the ledger of the month before: the order follows their durations."""
ONE_STORE, OWN_STORES = "one store", "a store each"


@dataclass(frozen=True)
class Spread:
    """A month on so many workers, whose images lie in one store or in one of each worker's own."""

    workers: int
    stores: str
    makespan: float
    bound: float
    utilisation: float
    server_cpu_share: float
    """Share of one core, over the month."""
    statements_per_second: float
    overhead: float
    """Overhead per task of claiming, storing, renewing and starting runs, as a share of its time."""

    @property
    def ratio(self) -> float:
        """Makespan over bound."""
        return self.makespan / self.bound


def main() -> None:
    """Measure, print the figures, and report missed targets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pull-requests", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--repositories", type=int, default=40)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--months", type=int, default=120)
    options = parser.parse_args()
    facts = recorded()
    tasks = tasks_of_a_month(options.tasks, options.repositories, facts, SEED)
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as name:
        folder = Path(name)
        url = start_embedded(folder / "postgres")
        spreads = spread_of(url, folder / "postgres", tasks, options.pull_requests, options.workers)
        stop(folder)
        print("\n".join(table(spreads)), flush=True)
        months = [f"{FIRST_YEAR + place // 12}-{place % 12 + 1:02}" for place in range(options.months)]
        storage = database_for_dagster(start_embedded(folder / "dagsters-postgres"))
        planning = planning_seconds(folder / "over-postgres", months, storage)
        stop(folder)
        planning_sqlite = planning_seconds(folder / "over-sqlite", months)
    figures = {
        "pull_requests": options.pull_requests,
        "tasks": options.tasks,
        "recorded": len(facts),
        **bound_figures(bound_of(tasks)),
        **{f"{key}_{value}": figure for spread in spreads for key, value, figure in told(spread)},
        "backfill_months": options.months,
        "backfill_planning_seconds": round(planning, 1),
        "backfill_planning_seconds_sqlite": round(planning_sqlite, 1),
    }
    print(f"planning a backfill of {options.months} months: {planning:.1f} s, with SQLite {planning_sqlite:.1f} s")
    misses = missed(spreads, planning)
    for miss in misses:
        print(f"missed: {miss}", file=sys.stderr)
    print(json.dumps(figures))
    sys.exit(1 if misses else 0)


def spread_of(
    url: str, folder: Path, tasks: Sequence[Task], pull_requests: int, numbers: Sequence[int]
) -> list[Spread]:
    """The month on each of *numbers* workers, in one image store and in one of each worker's own."""
    database = Database(url)
    database.migrate()
    with database.transaction() as connection:
        ledger.record(connection, intake_of(tasks, pull_requests))
        ledger.record(connection, month_before(tasks))
    spreads = []
    for workers in numbers:
        load = load_of(url, folder, f"2025-{workers:02}", workers, len(tasks))
        for stores in (ONE_STORE, OWN_STORES) if workers > 1 else (ONE_STORE,):
            spreads.append(simulated(database, folder, tasks, load, workers, stores))
    database.close()
    return spreads


def intake_of(tasks: Sequence[Task], pull_requests: int) -> list[LedgerEntry]:
    """The ledger's content on the month before its first task: all are known, most have none."""
    names = [task.item for task in tasks]
    names += [f"bench/project-{place % 40 + 1}#{100_000 + place}" for place in range(pull_requests - len(names))]
    return [
        LedgerEntry(stage=stage, month=MONTH, item=name, state=ItemState.DONE, run_id="bench", inputs="v1")
        for stage in (Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS)
        for name in names
    ]


def month_before(tasks: Sequence[Task]) -> list[LedgerEntry]:
    """Durations of items of the same repositories: the last ones of each, as if of the month before."""
    of_repository: dict[str, list[Task]] = {}
    for task in tasks:
        of_repository.setdefault(task.item.partition("#")[0], []).append(task)
    return [
        LedgerEntry(
            stage=stage,
            month=MONTH_BEFORE,
            item=f"{name}#{90_000 + number}",
            state=ItemState.DONE,
            run_id="bench",
            cost=Cost(seconds=seconds),
        )
        for name, some in of_repository.items()
        for number, task in enumerate(some[-KNOWN_BEFORE:])
        for stage, seconds in zip(STAGES, (task.environment, task.image, task.measurement), strict=True)
    ]


def simulated(database: Database, folder: Path, tasks: Sequence[Task], load: Load, workers: int, stores: str) -> Spread:
    """The month on *workers*; the server's work for it is measured, that of renewing leases is added."""
    with database.transaction() as connection:
        connection.execute(text("DELETE FROM ledger WHERE run_id LIKE 'worker %'"))
    own = [ImageStore() for _ in range(workers)]
    simulation = Simulation(database, MONTH, tasks, own if stores == OWN_STORES else own[:1] * workers, SEED)
    busy = server_cpu_seconds(folder)
    asyncio.run(simulation.run())
    busy = server_cpu_seconds(folder) - busy
    if simulation.done != len(tasks) * len(STAGES):
        raise RuntimeError(f"{simulation.done} items were done of {len(tasks)} tasks in {len(STAGES)} stages")
    makespan, bound = simulation.clock, bound_of(tasks)
    renewals = workers * makespan * RENEWALS_A_LEASE / LEASE.total_seconds()
    items = len(tasks) * len(STAGES)
    started = (workers - 1) * len(STAGES) * (LOOK_SECONDS / 2 + START_SECONDS)
    # a renewal is one statement of those that an item takes several of
    per_statement = load.seconds_per_item / load.statements_per_item
    added = items * load.seconds_per_item + renewals * per_statement + started
    return Spread(
        workers=workers,
        stores=stores,
        makespan=makespan,
        bound=bound.of(workers),
        utilisation=simulation.busy / (workers * makespan),
        server_cpu_share=(busy + renewals * load.server_cpu_seconds_per_item / load.statements_per_item) / makespan,
        statements_per_second=(items * load.statements_per_item + renewals) / makespan,
        overhead=added / bound.work,
    )


def missed(spreads: Sequence[Spread], planning: float) -> list[str]:
    """Return the missed targets, with their values."""
    misses = []
    for spread in spreads:
        name = f"{spread.workers} workers, {spread.stores}"
        if spread.ratio > WITHIN:
            misses.append(f"{name}: {spread.ratio:.3f} times the bound, {WITHIN} are allowed")
        if spread.overhead > OVERHEAD:
            misses.append(f"{name}: {spread.overhead:.2%} of a task is overhead, {OVERHEAD:.0%} are allowed")
    if planning > PLANNED_WITHIN:
        misses.append(f"the backfill: {planning:.1f} s of planning, {PLANNED_WITHIN:.0f} are allowed")
    return misses


def bound_figures(bound: Bound) -> dict[str, float]:
    """Parts of the bound."""
    return {"work_seconds": round(bound.work), "critical_path_seconds": round(bound.critical_path)}


def told(spread: Spread) -> list[tuple[str, str, float]]:
    """The figures of *spread*, each with its source and name."""
    key = f"{spread.workers}_workers" if spread.stores == ONE_STORE else f"{spread.workers}_workers_own_stores"
    return [
        (key, "makespan_seconds", round(spread.makespan)),
        (key, "ratio", round(spread.ratio, 4)),
        (key, "utilisation", round(spread.utilisation, 4)),
        (key, "server_cpu_share", round(spread.server_cpu_share, 6)),
        (key, "statements_per_second", round(spread.statements_per_second, 3)),
        (key, "overhead", round(spread.overhead, 6)),
    ]


def table(spreads: Sequence[Spread]) -> list[str]:
    """All of *spreads*, as Markdown."""
    head = "workers | images in | makespan | bound | ratio | busy | statements/s | server, of a core | overhead"
    rows = [
        f"{it.workers} | {it.stores} | {it.makespan / 3600:.2f} h | {it.bound / 3600:.2f} h | {it.ratio:.3f}"
        f" | {it.utilisation:.1%} | {it.statements_per_second:.2f} | {it.server_cpu_share:.3%} | {it.overhead:.2%}"
        for it in spreads
    ]
    return [f"| {row} |" for row in (head, "|".join(["---"] * 9), *rows)]


if __name__ == "__main__":
    main()
