"""Thousands of months with faults: each must end with the rows, and the release, of a month without.

python -m bench.faults --seeds 2000

Each seed runs the month of `faults_month` several times, in processes that are really killed: first with the faults
that `faults_injected` draws, then without, until it is through. Seeds below 0 kill it at each write in turn. Then rows,
ledger and release are compared with those of a run without faults, by checksum; the release also after each try.
Starts an embedded Postgres in a temporary folder; needs no network. What differs is printed with the command that
repeats it. The last line is JSON; ends with 1 if a seed differs.
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
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue

from sqlalchemy import text

from bench.embedded_server import stop
from bench.faults_injected import Kind, Sizes, plan_of, systematic
from bench.faults_month import make_repositories
from bench.faults_seeds import Ended, Tried, World
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded

HASTE = ("fsync", "synchronous_commit", "full_page_writes")
"""What a machine loses with its power is not tried here."""
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - below a name of ours
"""In place of a disk that would be waited for."""
JOBS_A_CORE = 2
"""A month waits for its database half of the time."""
PROGRESS_SECONDS = 10.0


def main() -> int:
    """Run the seeds, and print what was injected and survived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2000, help="months with drawn faults")
    parser.add_argument("--first", type=int, default=0, help="the first of them; below 0 are those of the writes")
    parser.add_argument("--every", type=int, default=1, help="kill at every so many-th write in turn; 0: at none")
    parser.add_argument("--jobs", type=int, default=JOBS_A_CORE * multiprocessing.cpu_count())
    options = parser.parse_args()
    began = time.monotonic()
    writes = range(-1, -len(systematic()) - 1, -options.every) if options.every else range(0)
    seeds = [*writes, *range(options.first, options.first + options.seeds)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fc-faults-", dir=SHARED_MEMORY)))
        server = prepared_server(folder)
        stack.callback(stop, folder)
        # a process that is killed leaves its temporary files, which go with the folder
        tempfile.tempdir = str(folder / "tmp")
        Path(tempfile.tempdir).mkdir()
        jobs = range(min(options.jobs, len(seeds)))
        # all of them fork before one of them uses polars
        worlds = [stack.enter_context(World(folder, server, f"job{job}")) for job in jobs]
        for world in worlds:
            world.prepare(worlds[0].wanted)
        found = run_seeds(seeds, worlds, began)
    return report(found, worlds[0].sizes, time.monotonic() - began)


def run_seeds(seeds: Sequence[int], worlds: Sequence[World], began: float) -> list[Tried]:
    """Try *seeds*, one at a time in each of *worlds*; prints progress, and what differs."""
    free: SimpleQueue[World] = SimpleQueue()
    for world in worlds:
        free.put(world)

    def one(seed: int) -> Tried:
        world = free.get()
        try:
            return world.tried(seed, plan_of(seed))
        finally:
            free.put(world)

    found: list[Tried] = []
    due = began
    # Ctrl-C ends what is running, and the report is of what was done
    with ThreadPoolExecutor(len(worlds)) as pool, suppress(KeyboardInterrupt), ExitStack() as stack:
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for future in as_completed([pool.submit(one, seed) for seed in seeds]):
            tried = future.result()
            found.append(tried)
            if tried.findings:
                print(f"seed {tried.seed}: {tried.plan}\n  " + "\n  ".join(tried.findings), flush=True)
                print(f"  repeat it: make bench-faults SEEDS=1 FIRST={tried.seed} EVERY=0", flush=True)
            if (now := time.monotonic()) >= due or len(found) == len(seeds):
                differ = sum(bool(each.findings) for each in found)
                line = f"{len(found)} of {len(seeds)} months, {differ} differ, {now - began:.0f} s"
                print(line, file=sys.stderr, flush=True)
                due = now + PROGRESS_SECONDS
    return found


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


def report(found: Sequence[Tried], sizes: Sizes, seconds: float) -> int:
    """Print the table, then a line of JSON; return the exit code."""
    injected = {kind: sum(tried.struck[kind] for tried in found) for kind in Kind}
    print(f"{'fault':34} {'injected':>8} {'seeds':>6}" + "".join(f"{ended:>9}" for ended in Ended))
    for kind in Kind:
        with_it = [tried for tried in found if tried.struck[kind]]
        ends = Counter(tried.ended for tried in with_it)
        figures = "".join(f"{ends[ended]:9}" for ended in Ended)
        print(f"{kind:34} {injected[kind]:8} {len(with_it):6}{figures}")
    different = [tried for tried in found if tried.ended is Ended.DIFFERS]
    ends = Counter(tried.ended for tried in found)
    figures_of = {
        "months": len(found),
        "tries": sum(tried.tries for tried in found),
        "writes": {"rows": sizes.rows, "commits": sizes.commits, "files": sizes.files},
        "injected": {kind.value: count for kind, count in injected.items()},
        "equal": ends[Ended.EQUAL],
        "by_force": ends[Ended.FORCED],
        "short": ends[Ended.SHORT],
        "differ": sorted(tried.seed for tried in different),
        "never_injected": [kind.value for kind, count in injected.items() if not count],
        "seconds": round(seconds, 1),
    }
    print(json.dumps(figures_of))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
