"""An exported task run by our own hands: its container, an agent, its grader. No harness."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .formats import COMMON_TEST, build_context, is_exported_task, solution

ORACLE, NOP = "oracle", "nop"
BUILD_SECONDS, FILE_SECONDS, AGENT_SECONDS = 1800.0, 300.0, 3 * 3600.0
GRADING_SECONDS = 6 * 3600.0
TAIL_CHARACTERS = 3000
PATCHES = frozenset({".patch", ".diff"})
REPORT = "/logs/verifier"


def evaluate(folder: Path, agent: str, *, daemon: DockerDaemon | None = None) -> dict[str, Any]:
    """The report on *agent* at the exported task in *folder*: `reason`, `detail`, `metrics` with `reward` among them.

    *agent* is `oracle`, `nop`, or a file: a patch (`.patch`, `.diff`), or a script that is run as the agent, in the
    checkout. Raises ConfigurationError for an invalid task or agent, and an agent that fails; ItemFailure
    (`incomplete`) if the grader broke off, OutsideSystemError if Docker does not answer.
    """
    if not is_exported_task(folder):
        raise ConfigurationError(
            f"{folder} is not an exported task", remedy="Name a folder that `fc-data export` wrote"
        )
    work = _work(folder, agent)
    with _container(daemon or DockerDaemon(), build_context(folder)) as container:
        container.do(work)
        container.put(folder / "tests", "/tests")
        graded = container.execute([f"/{COMMON_TEST}"], user="root", timeout=GRADING_SECONDS)
        report = container.read(f"{REPORT}/report.json")
    if report is None:
        raise ItemFailure(FailureKind.INCOMPLETE, f"the grader of {folder.name} broke off", log_tail=graded)
    told: dict[str, Any] = json.loads(report)
    return told


def _work(folder: Path, agent: str) -> Path | None:
    if agent == NOP:
        return None
    script = solution(folder) if agent == ORACLE else Path(agent)
    if not script.is_file():
        raise ConfigurationError(
            f"there is no agent {agent}", remedy=f"Use {ORACLE}, {NOP}, or name a patch or a script"
        )
    return script


@dataclass(frozen=True)
class _Container:
    daemon: DockerDaemon
    name: str

    def do(self, script: Path | None) -> None:
        """Let the agent work: nothing, a patch or a script."""
        if script is None:
            return
        self.put(script, "/solution")
        self.execute(["chmod", "a+r", "/solution"], timeout=FILE_SECONDS, user="root")
        command = ["git", "apply", "--whitespace=nowarn"] if script.suffix in PATCHES else ["bash"]
        self.execute([*command, "/solution"], timeout=AGENT_SECONDS)

    def put(self, source: Path, target: str) -> None:
        """Copy a file, or the content of a folder, there."""
        what = f"{source.resolve()}{'/.' if source.is_dir() else ''}"
        _run(self.daemon, ["cp", what, f"{self.name}:{target}"], FILE_SECONDS)

    def execute(self, command: list[str], *, timeout: float, user: str = "") -> str:
        """Run *command* as the image's user, in the checkout, or as another; return the end of its output."""
        options = [f"--user={user}"] if user else []
        done = self.daemon.run(["exec", *options, self.name, *command], timeout=timeout)
        said = (done.stdout + b"\n" + done.stderr).decode(errors="replace")[-TAIL_CHARACTERS:]
        if not done.ok and not user:
            raise ConfigurationError(f"the agent ended with status {done.rc}", why=said.strip())
        return said

    def read(self, path: str) -> bytes | None:
        """Content of a file, None without it."""
        done = self.daemon.run(["exec", "--user=root", self.name, "cat", path], timeout=FILE_SECONDS)
        return done.stdout if done.ok else None


@contextmanager
def _container(daemon: DockerDaemon, context: Path) -> Iterator[_Container]:
    name = f"formulacode-evaluate-{uuid.uuid4().hex[:12]}"
    with tempfile.TemporaryDirectory(prefix="fc-evaluate-") as scratch:
        built = Path(scratch, "image")
        _run(daemon, ["build", "--quiet", f"--iidfile={built}", str(context.resolve())], BUILD_SECONDS)
        image = built.read_text().strip()
    try:
        started = [
            "run",
            "--detach",
            "--network=none",
            f"--name={name}",
            image,
            "/opt/formulacode/bin/hold",
            "infinity",
        ]
        _run(daemon, started, FILE_SECONDS)
        yield _Container(daemon, name)
    finally:
        daemon.run(["rm", "--force", "--volumes", name], timeout=FILE_SECONDS)
        daemon.run(["rmi", image], timeout=FILE_SECONDS)


def _run(daemon: DockerDaemon, arguments: list[str], timeout: float) -> None:
    done = daemon.run(arguments, timeout=timeout)
    if not done.ok:
        said = done.stderr.decode(errors="replace")[-TAIL_CHARACTERS:]
        raise OutsideSystemError("docker", f"`docker {arguments[0]}` failed", why=said.strip())
