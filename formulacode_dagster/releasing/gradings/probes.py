"""Probes as agents: scripts that are run in a task's container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from formulacode_dagster.models.grading import GradingProbe
from formulacode_dagster.sources.git.diff import FileDiff, split_patch

END = "FC_END"
BUILT_IN = frozenset({GradingProbe.ORACLE, GradingProbe.NOP})
"""Probes that `evaluate` knows by name."""


def probe_script(probe: GradingProbe, task: Mapping[str, Any], patch: bytes) -> str:
    """Return bash that does what *probe* does to the checkout of a task.

    *task* is what its grader reads (`ExportedTask.for_grader`), *patch* the author's.
    """
    asked = {
        "probe": probe.value,
        "lines": {file.old_path: _lines_of(file) for file in split_patch(patch) if file.old_path and not file.binary},
        "benchmark_dir": task["benchmark_dir"],
        "benchmarks": task["benchmarks"],
        "suite": task["suite_files"] or {},
    }
    program = files(__package__).joinpath("dishonest_agent.py").read_text()
    return "\n".join(
        [
            "set -eu",
            "folder=$(mktemp --directory)",
            f"cat >\"$folder/agent.py\" <<'{END}'\n{program}{END}",
            f"cat >\"$folder/asked.json\" <<'{END}'\n{json.dumps(asked)}\n{END}",
            '"$FC_VENV/bin/python" "$folder/agent.py" "$folder/asked.json"',
            'rm -rf "$folder"\n',
        ]
    )


def _lines_of(file: FileDiff) -> list[int]:
    """Return the numbers of the base's lines that are removed, or before which lines are added."""
    return sorted({line.old for line in file.changed_lines()})
