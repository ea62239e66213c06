"""Runs of agents on released tasks: as harnesses leave them on disk, and as rows."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.models.agent_run import AgentRun, BenchmarkSpeedup, RunSource, RunState
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.results.agent_runners import AgentRunner
from formulacode_dagster.releasing.results.redaction import Redaction
from formulacode_dagster.releasing.results.release_runs import ReleaseRuns
from formulacode_dagster.releasing.results.released import ReleasedTask, ReleasedTasks
from formulacode_dagster.releasing.results.taking import take_recorded
from tests.records import make_image, make_spec
from tests.support.exports import row_of

MONTH = "2026-02"
TAG = "formulacode@2026-03"
PATCH = b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a = 1\n+faster = 2\n"
DIFF = b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a = 1\n+a = 3\n"
RECORDED = Path(__file__).parents[1] / "formulacode_dagster" / "releasing" / "results" / "recorded"
"""Files that Harbor 0.26 wrote for a task with a container of its own."""
TRAJECTORY = {
    "schema_version": "ATIF-v1.6",
    "session_id": "1",
    "agent": {"name": "codex", "version": "1.2", "model_name": "gpt"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Make it faster"},
        {"step_id": 2, "source": "agent", "message": "export OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz0123"},
        {"step_id": 3, "source": "agent", "message": "done with hf_abcdefghijklmnopqrstuvwxyz and hunter2hunter2"},
    ],
}


def released_row(kind: str = "python", **changes: Any) -> TaskRecord:
    """The row of a task that can be exported: `acme__<kind>-5`."""
    image = make_image(spec=make_spec(package_name="fast"))
    row = row_of(kind, image, PATCH, "registry.test/tasks:5", "sha256:" + "1" * 64)
    return TaskRecord.model_validate({**row, **changes})


def released_task(kind: str = "python", **changes: Any) -> ReleasedTask:
    """That row, as of its release."""
    return ReleasedTask(TAG, released_row(kind, **changes).model_dump())


def grader_report(task: ReleasedTask, reward: float = 0.5, /, **changes: Any) -> dict[str, Any]:
    """The report of the grader on a run of *task*."""
    benchmark, *_ = task.row["benchmarks"]
    return {
        "task": task.id,
        "task_sha256": task.identity.task_sha256,
        "grader_sha256": task.identity.grader_sha256,
        "reason": "faster" if reward else "unchanged",
        "detail": "",
        "metrics": {"reward": reward, "speedup": 4.0, "oracle_speedup": 16.0, "tests": 2.0, "tests_failed": 0.0},
        "benchmarks": {benchmark: {"speedup": 4.0, "oracle_speedup": 16.0}},
        "samples": {"base": {}},
        **changes,
    }


def write_json(file: Path, content: object) -> None:
    """Write *content* to *file*."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def write_trial(job: Path, task: ReleasedTask, name: str, report: dict[str, Any] | None, **changes: Any) -> Path:
    """Write a trial of Harbor into *job*, with *changes* of its result."""
    folder = job / name
    result = json.loads((RECORDED / "harbor_trial_result.json").read_text())
    lock = json.loads((RECORDED / "harbor_trial_lock.json").read_text())
    lock["task"]["digest"] = f"sha256:{task.identity.export_digest}"
    write_json(folder / "lock.json", lock)
    own = {"task_name": f"formulacode/{task.id}", "trial_name": name}
    write_json(folder / "result.json", {**result, **own, **changes})
    if report is not None:
        write_json(folder / "verifier" / "report.json", report)
        write_json(folder / "verifier" / "reward.json", report["metrics"])
    (folder / "artifacts").mkdir()
    (folder / "artifacts" / "agent.diff").write_bytes(DIFF)
    (job / "result.json").write_bytes((RECORDED / "harbor_job_result.json").read_bytes())
    return folder


def release_runs(
    tasks: list[ReleasedTask], runner: AgentRunner, folder: Path, database: Database, **options: Any
) -> ReleaseRuns:
    """The runs by *runner* on *tasks*, which are stored in *database*."""
    known = ReleasedTasks("dataset", tasks)
    return ReleaseRuns(
        tasks,
        folder,
        runner,
        lambda recorded: take_recorded(database, recorded, known, Redaction({}), lambda _: None),
        lambda _: None,
        **options,
    )


def agent_run(task: str, reward: float | None, /, agent: str = "codex", **changes: Any) -> AgentRun:
    """A run of *agent* on *task* with that *reward*; None: a failure of infrastructure."""
    state = RunState.INFRASTRUCTURE if reward is None else RunState.GRADED
    seed = f"{agent} {task} {reward} {sorted(changes.items(), key=str)}"
    told = {} if reward is None else {"reward": reward, "reason": "faster" if reward else "unchanged"}
    return AgentRun.model_validate(
        {
            "month": MONTH,
            "task_id": task,
            "run_id": hashlib.sha256(seed.encode()).hexdigest(),
            "release": TAG,
            "source": RunSource.HARBOR,
            "name": "trial",
            "agent": agent,
            "state": state,
            "statement_sha256": "s",
            "image_digest": "sha256:" + "1" * 64,
            "task_sha256": "t",
            "grader_sha256": "g",
            "taken_at": datetime(2026, 4, 1, tzinfo=UTC),
            **told,
            **changes,
        }
    )


def speedups(**by_benchmark: tuple[float, float]) -> tuple[BenchmarkSpeedup, ...]:
    """Speed-ups of agent and author by benchmark; two underscores in a name stand for a dot."""
    return tuple(
        BenchmarkSpeedup(benchmark=name.replace("__", "."), speedup=agent, oracle_speedup=oracle)
        for name, (agent, oracle) in by_benchmark.items()
    )
