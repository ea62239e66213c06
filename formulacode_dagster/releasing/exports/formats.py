"""The layouts of the harnesses: templates for a task in each format."""

from __future__ import annotations

import re
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError

COMMON_TEST = "tests/test.sh"
"""It grades in every format."""
AGENT_DIFF = "/opt/formulacode/work/agent.diff"
"""Where the agent's changes are written in its container, and where a fresh one for the grader has them."""


class HarnessFormat(StrEnum):
    """Whose tasks they are to be."""

    HARBOR = "harbor"
    FC_EVAL = "fc-eval"
    TERMINAL_BENCH = "terminal-bench"

    @classmethod
    def named(cls, name: str) -> HarnessFormat:
        """Return the format of that *name*; raises ConfigurationError if there is none."""
        if name not in set(cls):
            raise ConfigurationError(f"there is no format {name}", remedy=f"Take one of {', '.join(cls)}")
        return cls(name)

    @property
    def in_terminal(self) -> bool:
        """Whether agents and tests are typed into a terminal, and rewards are read from it."""
        return self is not HarnessFormat.HARBOR

    @property
    def templates(self) -> dict[str, str]:
        """The template of each file of a task, by its path there."""
        return {**_COMMON, **_OWN[self]}

    def folder_name(self, task_id: str) -> str:
        """Name of a task's folder.

        In a terminal, images and projects of compose are named after it: small letters, two underscores in a row.
        """
        return re.sub("_{3,}", "__", task_id.lower()) if self.in_terminal else task_id


_COMMON = {COMMON_TEST: "test.sh.jinja"}
_TERMINAL = {
    "task.yaml": "terminal/task.yaml.jinja",
    "Dockerfile": "Dockerfile.jinja",
    "docker-compose.yaml": "terminal/docker-compose.yaml.jinja",
    "solution.sh": "solve.sh.jinja",
    "run-tests.sh": "terminal/run-tests.sh.jinja",
}
_OWN = {
    HarnessFormat.HARBOR: {
        "task.toml": "harbor/task.toml.jinja",
        "instruction.md": "instruction.md.jinja",
        "environment/Dockerfile": "Dockerfile.jinja",
        "solution/solve.sh": "solve.sh.jinja",
    },
    HarnessFormat.FC_EVAL: {**_TERMINAL, "run-setup.sh": "terminal/run-setup.sh"},
    HarnessFormat.TERMINAL_BENCH: _TERMINAL,
}


def collect_script() -> str:
    """Return the shell script that writes `AGENT_DIFF`, for root in the agent's container."""
    return files(__package__).joinpath("formats", "collect.sh").read_text()


def is_exported_task(folder: Path) -> bool:
    """Return True if `export_task` wrote *folder*."""
    return (folder / "tests" / "task.json").is_file()


def build_context(folder: Path) -> Path:
    """Return the path of the Dockerfile of the exported task in *folder*."""
    return folder / "environment" if (folder / "environment").is_dir() else folder


def solution(folder: Path) -> Path:
    """The script of the exported task in *folder* that applies the author's patch."""
    harbors = folder / "solution" / "solve.sh"
    return harbors if harbors.is_file() else folder / "solution.sh"
