"""Any program that reads the task from its input and edits the workspace; it brings its own model, if any."""

from __future__ import annotations

import shlex
from pathlib import Path

from formulacode_dagster.building.engines.protocol import Completed

from .cli import INSTALLED, AgentReport, Program, Start, on_path
from .limits import RunEnd
from .protocol import AgentBudget, AgentName, AgentOutcome


class AnyProgram:
    """Implements `Cli`."""

    name = AgentName.COMMAND
    wire = None

    def __init__(self, command: str) -> None:
        """*command* as a shell would split it; a program of this machine is mounted, another one is the image's."""
        self._argv = tuple(shlex.split(command))

    def find(self) -> Program | None:
        """The program; None when no command is set."""
        if not self._argv:
            return None
        first, *others = self._argv
        path = Path(first).resolve() if "/" in first else on_path(first)
        if path is None or not path.is_file():
            return Program(self._argv, {})
        inside = f"{INSTALLED}/{path.name}"
        return Program((inside, *others), {path: inside})

    def start(self, budget: AgentBudget, *, model: str, key: str) -> Start:
        """The program's path, unchanged."""
        del budget, model, key
        return Start()

    def read(self, completed: Completed) -> AgentReport:
        """Any status but 0 is a crash."""
        if completed.rc == 0:
            return AgentReport()
        output = (completed.stderr or completed.stdout).decode(errors="replace").strip()
        return AgentReport(RunEnd(AgentOutcome.CRASHED, f"status {completed.rc}: {output[-300:]}"))
