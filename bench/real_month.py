"""A month of real repositories, unselected: every pull request of every mirror, by the README's own commands.

python -m bench.real_month --repositories DIR [--month 2026-01]

GitHub, model, Hub and registry are the sandbox's, over the bare mirrors owner/name.git of DIR, which should be those of
`real_month_repositories.txt`; everything else is as in production. The month before, of which only the intake and the
classifications are run, is what `plan` expects this one by. A second run goes on where the first ended; FC_HOME holds
all of it. Ends with 1 if a command fails, and names it. The last line is JSON: the funnel with its losses, speed-ups
with intervals, what was planned and what it cost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from formulacode_dagster.cli.operate import database, read_funnel, read_plan
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store.artifacts import MEASUREMENTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from resources.settings import make_home
from sandbox.session import running_sandbox

MONTH = "2026-01"
STAGES_BEFORE = ("repositories", "pull_requests", "classifications")
LISTED = Path(__file__).with_name("real_month_repositories.txt")
FC_DATA = Path(sys.executable).with_name("fc-data")


def main() -> int:
    """Run the commands one after the other, and print what the month came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, required=True, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--month", default=MONTH, help="YYYY-MM")
    options = parser.parse_args()
    home, started = make_home(), time.monotonic()
    with running_sandbox(options.repositories, home / "sandbox") as sandbox:
        os.environ.update(sandbox.environment)
        failed = [command for command in commands(options.month, home) if not succeeds(command)]
        with database() as store:
            report = figures(store, options.month)
    mirrors = {f"{path.parent.name}/{path.stem}" for path in options.repositories.glob("*/*.git")}
    report |= {
        "mirrors": len(mirrors),
        "listed_but_missing": sorted(listed() - mirrors),
        "cores": len(os.sched_getaffinity(0)),
        "seconds_of_this_run": round(time.monotonic() - started),
        "failed": [" ".join(command) for command in failed],
    }
    print(json.dumps(report))
    return 1 if failed else 0


def listed() -> set[str]:
    """Return the names of the repositories that the month is to have."""
    return {line for line in LISTED.read_text().splitlines() if not line.startswith("#")}


def commands(month: str, home: Path) -> Iterator[Sequence[str]]:
    """Yield the commands of the README for a month, without `fc-data`, in their order."""
    yield ("preflight",)
    for stage in STAGES_BEFORE:
        yield ("run", "--month", Month.parse(month).previous().key, "--stage", stage, "--yes")
    yield ("plan", "--month", month)
    yield ("run", "--month", month, "--yes")
    yield ("funnel", "--month", month)
    yield ("export", "--month", month, "--format", "harbor", str(home / "tasks"))
    yield ("site", str(home / "site"))


def succeeds(command: Sequence[str]) -> bool:
    """Run an `fc-data` command in view of the user; return False if it fails."""
    print(f"$ fc-data {' '.join(command)}", flush=True)
    return subprocess.run([FC_DATA, *command], check=False).returncode == 0


def figures(store: Database, month: str) -> dict[str, Any]:
    """Return what *month* came to so far, from the database."""
    parsed = Month.parse(month)
    funnel = read_funnel(store, parsed)
    planned = read_plan(store, parsed)
    with store.transaction() as connection:
        measured = MEASUREMENTS.read(connection, month)
        names = {row.id: row.full_name for row in REPOSITORIES.read(connection, month)}
    return {
        "month": month,
        "funnel": {step.name: step.count for step in funnel.steps},
        "losses": [loss.model_dump(mode="json", exclude={"examples"}) for loss in funnel.losses],
        "measured": [
            {
                "item": item_key(names[row.repository_id], row.number),
                "verdict": row.verdict.value,
                "speedup": round(row.speedup, 3),
                "interval": [round(row.low, 3), round(row.high, 3)],
                "source": row.provenance.source.value,
            }
            for row in measured
        ],
        "planned": {step.name: [step.count.low, step.count.high] for step in planned.steps} if planned else {},
        "cost": {cost.stage.value: cost.cost.model_dump(exclude_defaults=True) for cost in funnel.costs},
    }


if __name__ == "__main__":
    sys.exit(main())
