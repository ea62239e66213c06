"""Cost of the site of a large dataset with many agents: seconds to build, bytes of the first page and of all.

Generated: tasks over a year of months in 60 repositories, each with a patch and two sampled workloads; agents with a
run on each task. Needs neither network nor database.

python -m bench.site_scale --tasks 2000 --agents 20

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from formulacode_dagster.library import Dataset
from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.library.site.results_page import SiteResults
from formulacode_dagster.models.agent_run import AgentRun
from formulacode_dagster.models.classification import Category, Difficulty
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.tables import month_tables
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from formulacode_dagster.releasing.results.task_facts import statement_sha256
from tests.support.agent_runs import agent_run, speedups
from tests.support.site import hostile_task

FIRST_PAGE = ("index.html", "style.css", "site.js", "tasks.js")
FIRST_PAGE_BYTES_ALLOWED = 300_000
MONTHS = 12
FIRST_MONTH = "2025-01"
STATEMENT = (
    "# Slow\n\n{} spends its time in `convert`:\n\n```python\nfor row in rows:\n    total += convert(row)\n```\n"
)
PATCH = (
    "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1,9 +1,9 @@\n"
    + " import numpy as np\n" * 4
    + "-    for row in rows:\n-        total += convert(row)\n+    total = np.sum(rows)\n" * 20
)


def varied(number: int, month: Month, chance: random.Random) -> dict[str, Any]:
    """Return what tells task *number* from the others."""
    repository = f"organisation-{number % 20}/package-{number % 60}"
    speedup = 1 + chance.expovariate(0.7)
    return {
        "task_id": f"{repository.replace('/', '__')}-{number}",
        "repo_name": repository,
        "classification": chance.choice(list(Category)).value,
        "difficulty": chance.choice(list(Difficulty)).value,
        "workload_source": chance.choice(list(Source)).value,
        "speedup": speedup,
        "speedup_low": speedup * 0.9,
        "speedup_high": speedup * 1.1,
        "pr_merged_at": month.start.replace(day=chance.randrange(1, 29)),
    }


def generate(folder: Path, tasks: int, months: int, chance: random.Random) -> Dataset:
    """Release *tasks* over *months* in *folder*."""
    month = Month.parse(FIRST_MONTH)
    same = {"patch": PATCH, "lock": "numpy==2.0.0\n" * 40, "machine": "a machine, 16 cores", "python": "3.12"}
    for place in range(months):
        records = []
        for number in range(place, tasks, months):
            own = varied(number, month, chance)
            texts = {"final_md": STATEMENT.format(own["repo_name"]), "workload_commit": "b" * 40}
            records.append(_named(hostile_task(number, month.key, **same, **texts, **own)))
        FolderDestination(folder).release(month, month_tables(records))
        month = month.next()
    return Dataset.load(folder)


def _named(record: TaskRecords) -> TaskRecords:
    """*record*, with the id of its task in all tables."""
    name = {"task_id": record.row.task_id}
    tables = ("workloads", "samples", "tests", "profiles")
    told = {table: tuple(row.model_copy(update=name) for row in getattr(record, table)) for table in tables}
    return record.model_copy(update=told)


def attempts(dataset: Dataset, agents: int, chance: random.Random) -> list[AgentRun]:
    """Return a run of each agent on each task; one of 50 is a failure of infrastructure."""
    runs = []
    for agent in range(agents):
        skill, price = chance.random(), chance.uniform(0.05, 5)
        for task_id, task in dataset.items():
            reward = None if chance.random() < 0.02 else max(0.0, min(1.0, chance.gauss(skill, 0.3)))
            figures = {} if reward is None else {"speedup": 2**reward, "oracle_speedup": 2.0}
            runs.append(
                agent_run(
                    task_id,
                    reward,
                    f"agent-{agent}",
                    month=task.row["month"],
                    image_digest=str(task.row["image_digest"]),
                    statement_sha256=statement_sha256(task.row),
                    model=f"vendor/model-{agent}",
                    dollars=price * chance.uniform(0.5, 2),
                    turns=chance.randrange(5, 80),
                    agent_seconds=chance.uniform(30, 1800),
                    benchmarks=() if reward is None else speedups(bench__time_a=(2**reward, 2.0)),
                    **figures,
                )
            )
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the site of so many tasks and agents costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--months", type=int, default=MONTHS)
    asked = parser.parse_args(arguments)
    chance = random.Random(35)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as scratch:
        dataset = generate(Path(scratch) / "data", asked.tasks, asked.months, chance)
        runs = attempts(dataset, asked.agents, chance)
        started, busy = time.perf_counter(), time.process_time()
        site = write_site(dataset, Path(scratch) / "site", (), SiteResults(runs)).index.parent
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - busy
        sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    first = sum(sizes[name] for name in FIRST_PAGE)
    agents = [size for name, size in sizes.items() if name.startswith("agents/") and name.endswith((".js", ".html"))]
    told = {
        "tasks": asked.tasks,
        "agents": asked.agents,
        "runs": len(runs),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "first_page_bytes": first,
        "first_page_allowed": FIRST_PAGE_BYTES_ALLOWED,
        "leaderboard_bytes": sum(sizes[name] for name in ("results.html", "results.js", "style.css", "site.js")),
        "agent_page_bytes": sum(agents) // max(asked.agents, 1),
        "largest_task_page_bytes": max(size for name, size in sizes.items() if name.startswith("tasks/")),
        "files": len(sizes),
        "bytes": sum(sizes.values()),
    }
    for name, value in told.items():
        print(f"{name.replace('_', ' '):26}{value:>14,}")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
