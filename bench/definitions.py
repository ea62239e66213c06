"""Overhead of the platform itself: loading the code location, passing items through the runner, finding nothing to do.

Everything is also given as a ratio to a lower bound: `import dagster` by itself, and a separate transaction for each
item. Starts an embedded Postgres in a temporary folder; needs no network.

python bench/definitions.py --items 1000 --repeat 5

The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from embedded_server import stop

from formulacode_dagster.models.items import ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import IntakeCount
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded

R = TypeVar("R")
ROOT = Path(__file__).parents[1]
MONTH, OTHER_MONTH = "2026-02", "2026-01"
TIMED = "import resource, time; t = time.perf_counter(); {statement}; " + (
    "print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
)
LOAD = "import formulacode_dagster.definitions as d; d.defs.get_repository_def()"
BASELINE = "import dagster"


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5, help="fresh interpreters for each import, after a first")
    options = parser.parse_args()
    figures = {**loading(options.repeat), **passing_items(options.items)}
    for name, value in figures.items():
        print(f"{name:32} {value}")
    print(json.dumps(figures))


def loading(repeat: int) -> dict[str, float]:
    """Return seconds and peak memory of loading the code location, against `import dagster`; medians, in turns.

    The first turn fills the caches of the disk and of compiled modules; it counts only if it is the only one.
    """
    taken: dict[str, list[tuple[float, float]]] = {LOAD: [], BASELINE: []}
    for turn in range(repeat + 1):
        for statement, results in taken.items():
            found = in_fresh_interpreter(statement)
            if turn or not repeat:
                results.append(found)
    load, baseline = (tuple(statistics.median(column) for column in zip(*taken[s], strict=True)) for s in taken)
    return {
        "load_seconds": round(load[0], 3),
        "load_peak_mb": round(load[1], 1),
        "import_dagster_seconds": round(baseline[0], 3),
        "import_dagster_peak_mb": round(baseline[1], 1),
        "load_ratio": round(load[0] / baseline[0], 3),
    }


def in_fresh_interpreter(statement: str) -> tuple[float, float]:
    """Return seconds and peak megabytes of *statement* in a separate interpreter."""
    command = [sys.executable, "-c", TIMED.format(statement=statement)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def passing_items(number: int) -> dict[str, float]:
    """Items a second through the runner, against a transaction for each; and of a second run that finds all done."""
    rows = [row(MONTH, n) for n in range(1, number + 1)]
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        database = Database(start_embedded(Path(folder) / "postgres"))
        database.migrate()
        first, summary = timed(lambda: run(database, rows))
        assert (summary.count(ItemState.DONE), len(summary.worked)) == (number, number)
        second, summary = timed(lambda: run(database, rows))
        assert (summary.unchanged, len(summary.worked)) == (number, 0)
        single, _ = timed(lambda: one_by_one(database, [row(OTHER_MONTH, n) for n in range(1, number + 1)]))
        database.close()
        stop(Path(folder))
    return {
        "items": number,
        "runner_items_per_second": round(number / first, 1),
        "runner_ms_per_item": round(1000 * first / number, 3),
        "transaction_items_per_second": round(number / single, 1),
        "runner_ratio": round(first / single, 3),
        "second_run_seconds": round(second, 4),
        "second_run_items_per_second": round(number / second, 1),
        "second_run_ratio": round(second / first, 4),
    }


def run(database: Database, rows: list[IntakeCount]) -> StageSummary:
    """Pass *rows* through the runner; the work itself does nothing."""

    async def nothing(item: WorkItem[IntakeCount]) -> Outcome[IntakeCount]:
        return Outcome(item.value)

    items = [WorkItem(f"bench/items#{row.repository_id}", "v1", row) for row in rows]
    stage_run = StageRun(database, Stage.PULL_REQUESTS, MONTH, "bench")
    return asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, nothing, INTAKE_COUNTS.save))


def one_by_one(database: Database, rows: list[IntakeCount]) -> None:
    """The same rows and entries, a transaction for each."""
    for row in rows:
        entry = LedgerEntry(
            stage=Stage.PULL_REQUESTS,
            month=row.month,
            item=f"bench/items#{row.repository_id}",
            state=ItemState.DONE,
            run_id="bench",
            inputs="v1",
        )
        with database.transaction() as connection:
            INTAKE_COUNTS.save(connection, [row])
            ledger.record(connection, [entry])


def row(month: str, number: int) -> IntakeCount:
    """A small row."""
    return IntakeCount(month=month, repository_id=number, repository="bench/items", reported=1, stored=1)


def timed(action: Callable[[], R]) -> tuple[float, R]:
    """Return the seconds of *action*, and its result."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    main()
