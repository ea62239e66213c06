"""An exported task run by our own hands: an agent in its container, its changes graded in a fresh one. No harness."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
from formulacode_dagster.operating.files.regular_files import leads_out

from .containers import TaskContainer, task_container, task_image
from .formats import AGENT_DIFF, is_exported_task, solution

ORACLE, NOP = "oracle", "nop"
PATCHES = frozenset({".patch", ".diff"})
DIFF_FILE, REPORT_FILE, RUN_FILE = "agent.diff", "report.json", "run.json"
"""What is kept of a run."""
RECORDED = (DIFF_FILE, f"artifacts/{DIFF_FILE}")
"""Where a run of ours, and a trial of Harbor, has the agent's changes."""


class KeptRun(Frozen):
    """`run.json`: who worked on which task, and when; read by `fc-data results take`."""

    task: str
    agent: str
    started_at: datetime
    agent_ended_at: datetime | None = None
    finished_at: datetime
    error: str = ""
    message: str = ""


def evaluate(
    folder: Path, agent: str, *, keep: Path | None = None, daemon: DockerDaemon | None = None
) -> dict[str, Any]:
    """Return the report on *agent* at the exported task in *folder*: `reason`, `detail`, `metrics` with `reward`.

    *agent* is `oracle`, `nop`, or a file: a patch (`.patch`, `.diff`), or a script that is run as the agent, in the
    checkout. Its changes, as soon as it has ended, the report or the error, and who it was are written into the folder
    *keep*.

    Raises ConfigurationError for an invalid task or agent, and an agent that fails; the rest as `grade_diff`.
    """
    limits, work, daemon = _limits(folder), _work(folder, agent), daemon or DockerDaemon()
    name = agent if agent in {ORACLE, NOP} else Path(agent).stem
    started, ended = datetime.now(UTC), None

    def keep_run(error: FormulaCodeError | None = None) -> None:
        kept = KeptRun(
            task=_task(folder)["task_id"],
            agent=name,
            started_at=started,
            agent_ended_at=ended,
            finished_at=datetime.now(UTC),
            error=type(error).__name__ if error else "",
            message=str(error) if error else "",
        )
        _keep(keep, RUN_FILE, kept.model_dump_json().encode())

    try:
        with task_image(folder, daemon) as image:
            with task_container(image, limits, daemon) as container:
                _do(container, work)
                diff = container.collect()
            ended = datetime.now(UTC)
            _keep(keep, DIFF_FILE, diff)
            report = _graded(folder, diff, image, limits, daemon)
    except FormulaCodeError as error:
        keep_run(error)
        raise
    _keep(keep, REPORT_FILE, json.dumps(report).encode())
    keep_run()
    return report


def grade_diff(folder: Path, diff: bytes, *, daemon: DockerDaemon | None = None) -> dict[str, Any]:
    """Return the report on *diff*, a patch of the checkout of the exported task in *folder*.

    Raises ConfigurationError for an invalid task; ItemFailure (`incomplete`) if the grader broke off,
    OutsideSystemError if Docker does not answer.
    """
    limits, daemon = _limits(folder), daemon or DockerDaemon()
    with task_image(folder, daemon) as image:
        return _graded(folder, diff, image, limits, daemon)


def recorded_diff(run: Path) -> bytes:
    """Return the agent's changes that *run* has: a folder that `evaluate` kept, or of a trial of Harbor.

    Raises ConfigurationError if it has none of its own: links out of *run* are not followed.
    """
    for name in RECORDED:
        if (run / name).is_file() and not leads_out(run / name, run):
            return (run / name).read_bytes()
    raise ConfigurationError(
        f"{run} has no {' or '.join(RECORDED)}", remedy="Name a folder of --keep, or of a trial of Harbor"
    )


def read_diff(file: Path) -> bytes:
    """Return the content of a patch; raises ConfigurationError if there is no such file."""
    if not file.is_file():
        raise ConfigurationError(f"there is no patch {file}", remedy="Name a file that `git diff --binary` wrote")
    return file.read_bytes()


def _graded(
    folder: Path, diff: bytes | None, image: str, limits: dict[str, Any], daemon: DockerDaemon
) -> dict[str, Any]:
    """Grade *diff* in a container that no agent has seen; None is refused by the grader."""
    with task_container(image, limits, daemon) as container:
        if diff is not None:
            with tempfile.TemporaryDirectory(prefix="fc-evaluate-") as scratch:
                work = Path(scratch, "work")
                work.mkdir()
                (work / Path(AGENT_DIFF).name).write_bytes(diff)
                container.put(work, str(Path(AGENT_DIFF).parent))
        report, said = container.grade(folder / "tests", "--diff", AGENT_DIFF)
    if report is None:
        raise ItemFailure(FailureKind.INCOMPLETE, f"the grader of {folder.name} broke off", log_tail=said)
    return report


def _limits(folder: Path) -> dict[str, Any]:
    if not is_exported_task(folder):
        raise ConfigurationError(
            f"{folder} is not an exported task", remedy="Name a folder that `fc-data export` wrote"
        )
    limits: dict[str, Any] = _task(folder)["limits"]
    if "processes" not in limits:
        raise ConfigurationError(f"{folder} was exported by an older version", remedy="Export the task again")
    return limits


def _task(folder: Path) -> dict[str, Any]:
    task: dict[str, Any] = json.loads((folder / "tests" / "task.json").read_bytes())
    return task


def _work(folder: Path, agent: str) -> Path | None:
    if agent == NOP:
        return None
    script = solution(folder) if agent == ORACLE else Path(agent)
    if not script.is_file():
        raise ConfigurationError(
            f"there is no agent {agent}", remedy=f"Use {ORACLE}, {NOP}, or name a patch or a script"
        )
    return script


def _do(container: TaskContainer, script: Path | None) -> None:
    """Let the agent work: nothing, a patch or a script."""
    if script is None:
        return
    with tempfile.TemporaryDirectory(prefix="fc-evaluate-") as scratch:
        readable = Path(scratch, "solution")
        readable.write_bytes(script.read_bytes())
        readable.chmod(0o644)
        container.put(readable, "/solution")
    command = ["git", "apply", "--whitespace=nowarn"] if script.suffix in PATCHES else ["bash"]
    container.work([*command, "/solution"])


def _keep(folder: Path | None, name: str, content: bytes | None) -> None:
    if folder is not None and content is not None:
        with disk_errors(f"{name} into {folder}"):
            write_atomically(folder / name, content)
