"""Programs that let an agent work on one exported task, once, and leave a record of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.releasing.exports.evaluate import RUN_FILE, evaluate

LOG_FILE = "harness.log"
TAIL_CHARACTERS = 300


class AgentRunner(Protocol):
    """A program that runs an agent. Calls block, and may be made in several threads."""

    @property
    def name(self) -> str:
        """Name of the program."""

    def run(self, task: Path, folder: Path) -> str:
        """Let the agent work on the exported *task* and grade it; *folder*, which is new, gets the record.

        Return the program's last words, for a run that left no record. A failed run is no exception: its record names
        the error. Raises ConfigurationError if nothing could ever be run this way, Stopped when the run is to stop.
        """


def access_options(hosts: Sequence[str], variables: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the options with which Harbor lets an agent reach *hosts*, and gives it *variables*: NAME=VALUE, or NAME.

    The value of a NAME is not among them: Harbor takes it from its own environment, which is *environment*.

    Raises ConfigurationError for a NAME that is not set.
    """
    if missing := [name for name in variables if "=" not in name and not environment.get(name)]:
        raise ConfigurationError(
            f"{', '.join(missing)} is not set, and the agent is to have it", remedy="Set it, or write NAME=VALUE"
        )
    given = [variable if "=" in variable else f"{variable}=${{{variable}}}" for variable in variables]
    options = (("--allow-agent-host", hosts), ("--agent-env", given))
    return [word for option, values in options for value in values for word in (option, value)]


@dataclass(frozen=True)
class HarborRunner:
    """Harbor: one job with one trial for each run."""

    agent: str
    model: str = ""
    options: Sequence[str] = ()
    """More options of `harbor run`."""
    program: str = "harbor"

    @property
    def name(self) -> str:
        """`harbor`."""
        return "harbor"

    def run(self, task: Path, folder: Path) -> str:
        """Run Harbor, in the folder of jobs that holds *folder*.

        When the run is to stop, Harbor gets the signal of Ctrl-C and is waited for, since it removes its containers.
        """
        command = [self.program, "run", "--path", str(task.resolve()), "--agent", self.agent]
        command += ["--model", self.model] if self.model else []
        command += ["--env", "docker", "--jobs-dir", str(folder.parent.resolve()), "--job-name", folder.name]
        command += ["--n-concurrent", "1", "--yes", *self.options]
        log = folder.parent / f"{folder.name}.log"
        with disk_errors(f"the log {log}"):
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as output:
                self._run(command, output.fileno())
            said = log.read_bytes()
            if folder.is_dir():
                log.replace(folder / LOG_FILE)
        return said[-TAIL_CHARACTERS:].decode(errors="replace").strip()

    def _run(self, command: Sequence[str], output: int) -> None:
        stop_request().raise_if_requested()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # a group of its own: a Ctrl-C in the terminal would reach it twice
                start_new_session=True,
                env={"HARBOR_TELEMETRY": "off", **os.environ},
            )
        except OSError as error:
            raise ConfigurationError(
                f"{command[0]} cannot be started",
                why=error.strerror or str(error),
                remedy="Install Harbor, and name its program with --harbor; agents that are scripts need none",
            ) from error

        def interrupt() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)

        with stop_request().ending(interrupt):
            process.wait()


@dataclass(frozen=True)
class ScriptRunner:
    """The agents of `fc-data evaluate`, which need no harness: `oracle`, `nop`, a patch or a script."""

    agent: str
    daemon: DockerDaemon | None = None

    @property
    def name(self) -> str:
        """`evaluate`."""
        return "evaluate"

    def run(self, task: Path, folder: Path) -> str:
        """Evaluate *task* in this process, and keep changes, report and error in *folder*."""
        try:
            evaluate(task, self.agent, keep=folder, daemon=self.daemon)
        except FormulaCodeError as error:
            if not (folder / RUN_FILE).is_file():
                raise
            return str(error)
        return ""
