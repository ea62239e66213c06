"""Cost of a month of 20,000 pull requests for the store: seconds of writing, peak memory, and the former way for
comparison.

A generator stands in for GitHub: 100 repositories, one of them with 5,200 merged pull requests, bodies of some kB. All
goes through the path of `pull_requests`: windows, then a change and a patch for each. Every figure is taken in a fresh
process, forked from one with all imports; seconds of writing are those inside transactions. Starts an embedded Postgres
in a temporary folder; needs no network.

python bench/store.py --pull-requests 20000 --repositories 100 --largest 5200 --repeat 2

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embedded_server import stop
from sqlalchemy import text
from store_month import Generator, Size
from store_phases import PHASES, TimedDatabase

from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded

MEGABYTES_ALLOWED = 500
SECONDS_ALLOWED = 20.0


@dataclass(frozen=True)
class Taken:
    """Cost of one phase in its process."""

    writing_seconds: float
    seconds: float
    cpu_seconds: float
    peak_mb: float
    rows: int


def one_phase(name: str, url: str, size: Size) -> Taken:
    """Run a phase in this process."""
    database, source = TimedDatabase(url), Generator(size, " (changed)" if name.endswith("_changed") else "")
    started, busy = time.perf_counter(), time.process_time()
    rows = PHASES[name](database, source)
    taken = Taken(
        writing_seconds=round(database.seconds, 3),
        seconds=round(time.perf_counter() - started, 3),
        cpu_seconds=round(time.process_time() - busy, 3),
        peak_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        rows=rows,
    )
    database.close()
    return taken


def all_phases(url: str, size: Size) -> dict[str, Taken]:
    """Every phase, each in a fresh process; the former way in a separate database."""
    urls: dict[bool, str] = {}
    server = Database(url)
    for former in (False, True):
        name = f"bench_{'former' if former else 'now'}_{time.monotonic_ns()}"
        with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        urls[former] = server.engine.url.set(database=name).render_as_string(hide_password=False)
        Database(urls[former]).migrate()
    server.close()
    fresh = multiprocessing.get_context("forkserver")
    fresh.set_forkserver_preload(["store_phases"])
    with fresh.Pool(1, maxtasksperchild=1) as pool:
        return {name: pool.apply(one_phase, (name, urls[name.startswith("former")], size)) for name in PHASES}


def verdict(runs: Sequence[dict[str, Taken]]) -> dict[str, float]:
    """The best of *runs* for seconds, the worst for memory, and the references."""
    figures: dict[str, float] = {"rows": runs[0]["windows"].rows}
    for name in PHASES:
        if name == "nothing":
            continue
        figures[f"{name}_seconds"] = min(run[name].writing_seconds for run in runs)
        figures[f"{name}_cpu_seconds"] = min(run[name].cpu_seconds for run in runs)
        figures[f"{name}_peak_mb"] = max(run[name].peak_mb for run in runs)
    figures["process_alone_peak_mb"] = max(run["nothing"].peak_mb for run in runs)
    rows = figures["rows"]
    figures["windows_rows_per_second"] = round(rows / figures["windows_seconds"], 1)
    for kind in ("windows", "windows_unchanged", "windows_changed"):
        figures[f"{kind}_ratio"] = round(figures[f"{kind}_seconds"] / figures[f"former_{kind}_seconds"], 3)
    figures["writes_seconds"] = round(figures["windows_seconds"] + figures["changes_seconds"], 3)
    figures["writes_seconds_allowed"] = SECONDS_ALLOWED
    figures["peak_mb"] = max(
        figures[f"{name}_peak_mb"] for name in PHASES if not name.startswith("former") and name != "nothing"
    )
    figures["peak_mb_allowed"] = MEGABYTES_ALLOWED
    return figures


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pull-requests", type=int, default=20_000)
    parser.add_argument("--repositories", type=int, default=100)
    parser.add_argument("--largest", type=int, default=5_200, help="pull requests of the largest repository")
    parser.add_argument("--repeat", type=int, default=2, help="times the whole is measured; the best seconds count")
    options = parser.parse_args()
    size = Size(options.pull_requests, options.repositories, options.largest)
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        url = start_embedded(Path(folder) / "postgres")
        figures = verdict([all_phases(url, size) for _ in range(options.repeat)])
        stop(Path(folder))
    for name, value in figures.items():
        print(f"{name:40} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
