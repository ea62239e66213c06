"""Thousands of months with faults: each must end with the rows, and the release, of a month without.

python -m bench.faults --seeds 2000

Each seed runs the month of `faults_month` several times, in processes that are really killed: first with the faults
that `faults_injected` draws, then without, until it is through. The first seeds kill it at each write in turn. Then
rows, ledger and release are compared with those of a run without faults, by checksum; the release also after each try.
Starts an embedded Postgres in a temporary folder; needs no network. The last line is JSON; ends with 1 if a seed
differs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sqlalchemy import text

from bench.definitions import stop
from bench.faults_injected import Kind, Plan, Sizes, drawn, systematic
from bench.faults_month import make_repositories
from bench.faults_seeds import Ended, State, Tried, World
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded

HASTE = ("fsync", "synchronous_commit", "full_page_writes")
"""What a machine loses with its power is not tried here."""
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - below a name of ours
"""In place of a disk that would be waited for."""
MOST_TOLD = 12


def main() -> int:
    """Run the seeds, and print what was injected and survived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2000, help="months with drawn faults")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--every", type=int, default=1, help="kill at every so many-th write in turn; 0: at none")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fc-faults-", dir=SHARED_MEMORY) as name:
        folder = Path(name)
        server = prepared_server(folder)
        with World(folder, server, "reference") as world:
            sizes, wanted = world.reference().sizes, world.wanted
        numbers = range(options.first, options.first + options.seeds)
        plans: list[tuple[str, list[Plan]]] = [(f"seed {number}", drawn(number, sizes)) for number in numbers]
        if options.every:
            chosen = systematic(sizes)[:: options.every]
            plans = [(f"{plan[0].kind}, {plan[0].at}", [plan]) for plan in chosen] + plans
        parts = [plans[job :: options.jobs] for job in range(options.jobs)]
        with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
            found = pool.starmap(partial(run_plans, folder, server, wanted), enumerate(parts))
        stop(folder)
    return report([tried for part in found for tried in part], sizes, time.monotonic() - began)


def prepared_server(folder: Path) -> str:
    """The URL of a server in *folder* that is in haste."""
    server = start_embedded(folder / "postgres")
    database = Database(server)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for setting in HASTE:
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    database.close()
    make_repositories(folder / "repositories")
    return server


def run_plans(
    folder: Path, server: str, wanted: dict[bool, State], job: int, plans: Sequence[tuple[str, list[Plan]]]
) -> list[Tried]:
    """Try *plans* one after the other, in a separate database."""
    with World(folder, server, f"job{job}", wanted) as world:
        return [world.tried(label, tries) for label, tries in plans]


def report(found: Sequence[Tried], sizes: Sizes, seconds: float) -> int:
    """Print the table, then a line of JSON; return the exit code."""
    injected = {kind: sum(tried.struck[kind] for tried in found) for kind in Kind}
    print(f"{'fault':34} {'injected':>8} {'seeds':>6} {'equal':>6} {'by force':>8} {'differ':>6}")
    for kind in Kind:
        with_it = [tried for tried in found if tried.struck[kind]]
        ends = Counter(tried.ended for tried in with_it)
        figures = (ends[Ended.EQUAL], ends[Ended.FORCED], ends[Ended.DIFFERS])
        print(f"{kind:34} {injected[kind]:8} {len(with_it):6} {figures[0]:6} {figures[1]:8} {figures[2]:6}")
    different = [tried for tried in found if tried.ended is Ended.DIFFERS]
    for tried in different[:MOST_TOLD]:
        print(f"{tried.label}: {tried.plan}\n  " + "\n  ".join(tried.findings))
    ends = Counter(tried.ended for tried in found)
    figures_of = {
        "months": len(found),
        "tries": sum(tried.tries for tried in found),
        "writes": {"rows": sizes.rows, "commits": sizes.commits, "files": sizes.files},
        "injected": {kind.value: count for kind, count in injected.items()},
        "equal": ends[Ended.EQUAL],
        "by_force": ends[Ended.FORCED],
        "differ": [tried.label for tried in different],
        "never_injected": [kind.value for kind, count in injected.items() if not count],
        "seconds": round(seconds, 1),
    }
    print(json.dumps(figures_of))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
