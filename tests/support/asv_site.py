"""A small published asv site, as a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENVIRONMENT = {"machine": "i7", "python": "3.12", "branch": "main", "numpy": "", "setuptools": None}
GRAPHS = "graphs/branch-main/machine-i7/numpy/python-3.12/setuptools-null"
PLAIN, GRID, MEMORY = "bench.Plain.time_it", "bench.Grid.time_them", "bench.Plain.peakmem_it"


def site_content(points: int = 12) -> dict[str, Any]:
    """The files of a site by their paths: at the sixth revision `PLAIN` and the first combination of `GRID` halve."""
    revisions = [100 + 2 * number for number in range(points)]
    halved = [2.0 if number < 6 else 1.0 for number in range(points)]
    benchmarks = {
        PLAIN: {"name": PLAIN, "type": "time", "unit": "seconds", "param_names": [], "params": [], "timeout": 60.0},
        GRID: {
            "name": GRID,
            "type": "time",
            "unit": "seconds",
            "param_names": ["n", "k"],
            "params": [["1", "2"], ["'a'"]],
        },
        MEMORY: {"name": MEMORY, "type": "peakmemory", "unit": "bytes", "param_names": [], "params": []},
    }
    return {
        "index.json": {
            "project": "sample",
            "show_commit_url": "https://example.org/commit/",
            "hash_length": 8,
            "revision_to_hash": {str(number): f"{number:040x}" for number in revisions},
            "revision_to_date": {str(number): 1_700_000_000_000 + number * 86_400_000 for number in revisions},
            "graph_param_list": [ENVIRONMENT],
            "benchmarks": benchmarks,
            "machines": {"i7": {}},
            "tags": {"v1": 100},
        },
        "info.json": {"asv-version": "0.6.4", "timestamp": 1},
        "regressions.json": {
            "regressions": [[PLAIN, f"{GRAPHS}/{PLAIN}.json", ENVIRONMENT, None, 2.0, 1.0, [[None, 104, 1.0, 2.0]]]]
        },
        f"{GRAPHS}/{PLAIN}.json": [list(pair) for pair in zip(revisions, halved, strict=True)],
        f"{GRAPHS}/{GRID}.json": [[number, [value, 3.0]] for number, value in zip(revisions, halved, strict=True)],
        f"{GRAPHS}/{MEMORY}.json": [[number, 1_000] for number in revisions],
        **{f"graphs/summary/{name}.json": [[100, 2.0], [110, None]] for name in benchmarks},
    }


def write_site(folder: Path, **changes: bytes | Any) -> Path:
    """The site in *folder*; *changes* are other contents by path, None to leave a file out."""
    for path, content in (site_content() | changes).items():
        if content is not None:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder
