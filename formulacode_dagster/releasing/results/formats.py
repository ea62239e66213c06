"""Recognizes the output of a harness by its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError

from . import evaluated, harbor, terminal
from .recorded import RecordedRun


@dataclass(frozen=True)
class RecordedRuns:
    """The runs in a folder, each with the function that reads it."""

    folders: tuple[Path, ...]
    read: Callable[[Path], RecordedRun]


_FORMATS = (
    (harbor.trials_in, harbor.read_trial),
    (evaluated.runs_in, evaluated.read_run),
    (terminal.trials_in, terminal.read_trial),
)


def runs_in(path: Path) -> RecordedRuns:
    """Return the runs in *path*; none if no known program wrote it."""
    for find, read in _FORMATS:
        if folders := find(path):
            return RecordedRuns(tuple(folders), read)
    return RecordedRuns((), harbor.read_trial)


def recognize(path: Path) -> RecordedRuns:
    """Return the runs in *path*; raises ConfigurationError if no known program wrote it."""
    found = runs_in(path)
    if found.folders:
        return found
    raise ConfigurationError(
        f"{path} has no results of agents",
        why="neither Harbor, `fc-data evaluate --keep`, fc-eval nor terminal-bench wrote it",
        remedy="Name a folder of jobs or a job of Harbor, one or several runs of --keep, or the folder of one run of "
        "fc-eval or terminal-bench, which has run_metadata.json",
    )
