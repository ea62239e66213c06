"""An asv site of real size, by a seed: modelled on a well-known dashboard."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

ROWS = 53_705
BENCHMARKS, MACHINES = 115, 7
GRAPHS = BENCHMARKS * MACHINES
REVISIONS = 400


def write_site(folder: Path) -> Path:
    """The site in *folder*: GRAPHS graphs with ROWS points, and a summary a benchmark."""
    rng = np.random.default_rng(14)
    names = [f"suite_{number % 9}.Class{number % 23}.time_case_{number}" for number in range(BENCHMARKS)]
    environments = [
        {"machine": f"m{number}", "os": "Linux", "python": "3.12", "branch": "main", "ram": "64GB", "numpy": "2.1"}
        for number in range(MACHINES)
    ]
    index = {
        "project": "synthetic",
        "revision_to_hash": {str(revision): f"{revision:040x}" for revision in range(REVISIONS)},
        "revision_to_date": {str(revision): 1_600_000_000_000 + revision * 10**8 for revision in range(REVISIONS)},
        "graph_param_list": environments,
        "benchmarks": {name: {"name": name, "type": "time", "unit": "seconds"} for name in names},
    }
    files: dict[str, object] = {"index.json": index, "regressions.json": {"regressions": []}}
    sizes = iter(np.full(GRAPHS, ROWS // GRAPHS) + (np.arange(GRAPHS) < ROWS % GRAPHS))
    for environment in environments:
        path = "/".join(sorted(f"{key}-{value}" for key, value in environment.items()))
        files |= {f"graphs/{path}/{name}.json": _graph(rng, int(next(sizes))) for name in names}
    files |= {f"graphs/summary/{name}.json": _graph(rng, REVISIONS // 2) for name in names}
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(content))
    return folder


def _graph(rng: np.random.Generator, points: int) -> list[list[float]]:
    revisions = np.sort(rng.choice(REVISIONS, points, replace=False)).tolist()
    return [list(pair) for pair in zip(revisions, rng.lognormal(-7, 0.05, points).tolist(), strict=True)]
