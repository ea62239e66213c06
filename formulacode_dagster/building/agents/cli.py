"""Adapters of agents' programs: how to find one, start it and interpret its output."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from formulacode_dagster.building.engines.protocol import Completed

from .container import PORT
from .limits import RunEnd
from .protocol import AgentBudget, AgentName
from .wire import Wire

BASE_URL = f"http://127.0.0.1:{PORT}"
"""Endpoint and name of the model, as the agent sees them."""
INSTALLED = "/opt/agent"
"""Mount points of an agent's files."""
ELF = b"\x7fELF"


@dataclass(frozen=True)
class Program:
    """An installed agent: its mounts and its command."""

    argv: tuple[str, ...]
    mounts: Mapping[Path, str]
    version: str = ""


@dataclass(frozen=True)
class Start:
    """One call: arguments after the program, environment variables, and files of the home folder."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentReport:
    """The meaning of an agent's output: how it ended, why it failed, and the usage it reports."""

    ended: RunEnd | None = None
    dollars: float = 0.0


class Cli(Protocol):
    """An adapter of one program."""

    @property
    def name(self) -> AgentName:
        """Name of the adapter."""

    @property
    def wire(self) -> Wire | None:
        """Protocol it uses to reach its model; None for a program without one."""

    def find(self) -> Program | None:
        """Path of the program if it is installed on this machine."""

    def start(self, budget: AgentBudget, *, model: str, key: str) -> Start:
        """Its command line; *key* is the dummy key."""

    def read(self, completed: Completed) -> AgentReport:
        """Interpret its output. Third parties control the program, so any text may occur."""


def on_path(name: str) -> Path | None:
    """The very file that the shell would call *name*."""
    path = shutil.which(name)
    return Path(path).resolve() if path is not None else None


def version_beside(path: Path, package: str) -> str:
    """Return the version in the nearest package.json above *path* of the named *package*; empty if there is none."""
    for folder in path.parents:
        try:
            described = json.loads((folder / "package.json").read_text())
        except (OSError, ValueError):
            continue
        if str(described.get("name", "")).startswith(package):
            # npm's packages of one platform are versions of the whole
            return str(described.get("version", "")).removesuffix("-linux-x64")
    return ""


def is_program(path: Path) -> bool:
    """Return True if *path* is a binary that needs no interpreter."""
    try:
        with path.open("rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False


def binary(start: Path, *patterns: str) -> Path | None:
    """*start*, when it is a binary, else the first that matches one of *patterns* below a folder above it."""
    if is_program(start):
        return start
    matches = (path for folder in start.parents for pattern in patterns for path in sorted(folder.glob(pattern)))
    return next((path for path in matches if is_program(path)), None)


def last_json(text: str) -> dict[str, object]:
    """Return the last object that *text* holds as a line or at its end; empty if there is none."""
    for begin in (text.rfind("\n{"), text.find("{") - 1):
        try:
            found = json.loads(text[begin + 1 :])
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
