"""A small folder of raw results of asv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.asv_site import GRID, MEMORY, PLAIN

MACHINE = {"machine": "i7", "arch": "x86_64", "version": 1}
PARAMETERS = [["1", "2"], ["'a'"]]
BENCHMARKS: dict[str, Any] = {
    PLAIN: {"name": PLAIN, "type": "time", "unit": "seconds", "param_names": [], "params": [], "version": "v1"},
    GRID: {"name": GRID, "type": "time", "unit": "seconds", "param_names": ["n", "k"], "params": PARAMETERS},
    MEMORY: {"name": MEMORY, "type": "peakmemory", "unit": "bytes", "param_names": [], "params": []},
}
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]


def commits(count: int) -> list[str]:
    return [f"{100 + number:040x}" for number in range(count)]


def result_file(commit: str, number: int, api: int = 2, **changes: Any) -> dict[str, Any]:
    """asv's output for a commit: at the sixth, PLAIN and the first combination of GRID halve."""
    value = 2.0 if number < 6 else 1.0
    read = {
        "commit_hash": commit,
        "env_name": "virtualenv-py3.12-numpy",
        "date": 1_700_000_000_000 + number * 86_400_000,
        "params": {"machine": "i7", "python": "3.12", "numpy": ""},
        "python": "3.12",
        "requirements": {"numpy": ""},
        "version": api,
    }
    if api == 1:
        stats = [{"ci_99": [value - 0.1, value + 0.1]}, None]
        results: dict[str, Any] = {
            PLAIN: {"result": value, "stats": stats[0], "params": []},
            GRID: {"result": [value, None], "stats": stats, "params": PARAMETERS},
            MEMORY: 1000,
        }
        return {**read, "results": results, "benchmark_version": {PLAIN: "v1"}, **changes}
    low, high = value - 0.1, value + 0.1
    rows = {
        PLAIN: [[value], [], "v1", 1_700_000_000_000, 1.0, [low], [high]],
        GRID: [[value, None], PARAMETERS, None, 1_700_000_000_000, 1.0, [low, None], [high, None]],
        MEMORY: [[1000], [], None, 1_700_000_000_000],
    }
    return {**read, "env_vars": {}, "result_columns": COLUMNS, "results": rows, "durations": {}, **changes}


def write_results(folder: Path, of: list[str] | None = None, api: int = 2, **changes: bytes | Any) -> Path:
    """Results of the commits *of* in *folder*; *changes* are other contents by path, None to leave a file out."""
    files: dict[str, Any] = {"benchmarks.json": {**BENCHMARKS, "version": 2}, "i7/machine.json": MACHINE}
    for number, commit in enumerate(of or commits(12)):
        files[f"i7/{commit[-8:]}-virtualenv-py3.12-numpy.json"] = result_file(commit, number, api)
    for path, content in (files | changes).items():
        if content is not None:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder
