"""A month's intake of a hundred repositories: ours and the predecessor's method, against GitHub's limits.

Both use the same generated world behind a sandbox GitHub in a separate process, with GitHub's limits, per minute and
per hour, and 1 % of broken responses. The baseline would take hours: when GitHub makes it wait, the sandbox's clock is
advanced instead. Ours waits in real time. The expected result comes from the plan of the world, not from any API.

python bench/intake.py

Exit code 1 when a target is missed. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from filelock import FileLock
from intake_report import Contender, Report, judged
from intake_world import MONTH, World, WorldSize, open_world

from formulacode_dagster.models.repository import Repository, RepositoryState
from sandbox.github.served_folder import ServedFolder

BENCH = Path(__file__).parent
SMALL = WorldSize(repositories=8, merged=420, largest=230, files=130)


def main() -> None:
    """Measure, print the table and the figures, and fail when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a world of a few repositories, in seconds")
    parser.add_argument(
        "--rate-seconds", type=float, default=60.0, help="length of the rate's phase; an hour's points last for 80 s"
    )
    parser.add_argument("--patches", type=int, default=1_000, help="to read from mirrors")
    parser.add_argument("--broken", type=float, default=0.01, help="share of answers that are broken")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that every answer takes at least")
    options = parser.parse_args()
    home = Path(os.environ.get("FC_HOME") or Path(tempfile.gettempdir()) / "formulacode-bench").absolute() / "bench"
    home.mkdir(parents=True, exist_ok=True)
    # The world is altered during intake: only one bench may use it at a time.
    with FileLock(home / "intake.lock"), tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        world = open_world(home, SMALL if options.small else WorldSize())
        report = measure(world, Path(folder), options)
    print(report.table())
    print(json.dumps(report.figures()))
    sys.exit(1 if report.missed() else 0)


def measure(world: World, work: Path, options: argparse.Namespace) -> Report:
    """Ours, then its sustained rate, then patches, then the baseline; each in a separate process."""
    repositories = work / "repositories.json"
    repositories.write_text(json.dumps(discovered(world)))
    world.as_taken_in()
    served = world.folder / "served"
    with github(world, options) as url:
        ours, ours_books = run("ours", url, work, "--repositories", repositories)
        rate: dict[str, Any] = {}
        if options.rate_seconds:
            seconds = str(options.rate_seconds)
            rate, rate_books = run("rate", url, work, "--repositories", repositories, "--seconds", seconds)
            rate |= {name: sum(rate_books[name].values()) for name in ("limit_hits", "faults")}
        clone = ("--facts", work / "ours.json", "--served", served, "--patches", options.patches)
        read, read_books = run("patches", url, work, *clone)
        baseline, baseline_books = run("baseline", url, work, "--repositories", repositories)
    return Report(
        size=world.size,
        ours=judged(Contender.OURS, world, ours, ours_books),
        baseline=judged(Contender.BASELINE, world, baseline, baseline_books),
        rate=rate,
        patches=read | {"requests": read_books["total"]},
        settings={name: getattr(options, name) for name in ("broken", "latency")},
    )


def discovered(world: World) -> list[dict[str, Any]]:
    """The repositories as discovery saw them, before one was renamed and one vanished."""
    world.as_discovered()
    rows = [
        Repository(
            month=MONTH.key,
            id=served.id,
            node_id=served.node_id,
            full_name=served.name,
            state=RepositoryState.ARCHIVED if served.facts.is_archived else RepositoryState.ACTIVE,
            default_branch="main",
            config_path="asv.conf.json",
        )
        for served in ServedFolder(world.folder / "served").repositories()
    ]
    return [row.model_dump(mode="json") for row in rows]


@contextmanager
def github(world: World, options: argparse.Namespace) -> Iterator[str]:
    """The address of the sandbox over *world*."""
    command: list[Any] = [
        *(sys.executable, BENCH / "intake_serve.py", world.folder / "served"),
        *("--broken", options.broken, "--latency", options.latency),
        *("--since", MONTH.start.isoformat(), "--until", MONTH.end.isoformat()),
    ]
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        url = server.stdout.readline().strip()
        if not url:
            raise SystemExit("the sandbox did not start")
        try:
            yield url
        finally:
            server.stdin.close()
            server.wait(timeout=60)


def run(contender: str, url: str, work: Path, *arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the result of *contender*, and the sandbox's books about it only."""
    httpx.post(f"{url}/_sandbox/reset", timeout=30).raise_for_status()
    output = work / f"{contender}.json"
    command = [sys.executable, BENCH / "intake_runs.py", contender, url, output, *arguments]
    subprocess.run(list(map(str, command)), check=True)
    books = httpx.get(f"{url}/_sandbox/calls", timeout=30).raise_for_status().json()
    return json.loads(output.read_text()), books


if __name__ == "__main__":
    main()
