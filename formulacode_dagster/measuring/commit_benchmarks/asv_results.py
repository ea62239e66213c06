"""asv's results: `results/<machine>/<hash8>-<environment>.json` of format 2, and related files.

asv's own `publish`, `compare` and `show` can read them. A field `formulacode`, which asv ignores, records their origin.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from formulacode_dagster.building.suites.questions import Description, NotTimed, Timed
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically

RESULTS = "results"
BENCHMARKS = "benchmarks.json"
MACHINE = "machine.json"
OURS = "formulacode"
FORMAT = 2
COLUMNS = (
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"),
    *("stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
)
LEVEL = 0.99
SKIPPED = "skipped"
Samples = Mapping[str, Sequence[Timed | NotTimed]]
"""Keys are asv's names with parameters."""


def machine_facts(name: str) -> dict[str, Any]:
    """Return asv's `machine.json` for this machine, called *name*."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    uname = platform.uname()
    return {
        "arch": uname.machine,
        "cpu": uname.processor or uname.machine,
        "machine": name,
        "num_cpu": str(os.cpu_count() or 1),
        "os": f"{uname.system} {uname.release}",
        "ram": str(memory),
        "version": 1,
    }


def result_path(results: Path, machine: str, sha: str, environment: str) -> Path:
    """Return the path of the results of *sha* below asv's folder of *results*."""
    return results / machine / f"{sha[:8]}-{environment}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in *path*; None if there is no file. Raises ConfigurationError for anything else."""
    try:
        read = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {path}", why=str(error), remedy="Mend or delete it") from error
    if not isinstance(read, dict):
        raise ConfigurationError(f"cannot read {path}", why="it is not a JSON object", remedy="Mend or delete it")
    return read


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write *content* whole or not at all; raises OutsideSystemError when the disk is full."""
    with disk_errors(str(path)):
        write_atomically(path, json.dumps(content, indent=1, sort_keys=True).encode())


def new_result(sha: str, date_ms: int, python: str, machine: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a commit of which nothing was measured yet; *date_ms* as asv has it, milliseconds since 1970."""
    params = {name: value for name, value in machine.items() if name != "version"}
    return {
        "commit_hash": sha,
        "date": date_ms,
        "durations": {},
        "env_name": environment_name(python),
        "env_vars": {},
        "params": {**params, "python": python},
        "python": python,
        "requirements": {},
        "result_columns": list(COLUMNS),
        "results": {},
        "version": FORMAT,
    }


def environment_name(python: str) -> str:
    """Return asv's name of the environment; commits with one interpreter form one series, whatever their locks."""
    return f"formulacode-py{python}"


def add_samples(
    result: Mapping[str, Any], descriptions: Sequence[Description], samples: Samples, *, seconds: float
) -> dict[str, Any]:
    """Return *result* with *samples* added, and all figures recomputed; *seconds* is the time of taking them.

    A combination without samples is null, asv's value for failed, or NaN if the benchmark skips it. Samples of another
    version of a benchmark are dropped.
    """
    rows = dict(result["results"])
    for description in descriptions:
        labels = labels_of(description)
        if not any(label in samples for label in labels):
            continue
        timed = [[each for each in samples.get(label, ()) if isinstance(each, Timed)] for label in labels]
        skipped = [
            any(isinstance(each, NotTimed) and each.kind == SKIPPED for each in samples.get(label, ()))
            for label in labels
        ]
        rows[description.name] = _joined(
            rows.get(description.name, ()),
            [[each.value for each in values] for values in timed],
            skipped,
            {
                "params": [list(values) for values in description.parameters],
                "version": description.version,
                "started_at": int(datetime.now(tz=UTC).timestamp() * 1000),
                "duration": round(seconds, 3),
                "stats_number": [max((each.calls for each in values), default=None) for values in timed],
            },
        )
    return {**result, "results": rows}


def append_result(before: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """*result* of a run of asv that kept its samples, with those of the runs *before* it."""
    rows = dict(before["results"])
    for name, row in result["results"].items():
        told = dict(zip(result["result_columns"], row, strict=False))
        values = [list(samples or ()) for samples in told.get("samples") or ()]
        if not values:
            # tracked values have no samples: the newest one counts
            rows[name] = row
            continue
        skipped = [isinstance(value, float) and math.isnan(value) for value in told["result"] or [None] * len(values)]
        rows[name] = _joined(rows.get(name, ()), values, skipped, told)
    return {**result, "result_columns": list(COLUMNS), "results": rows}


def _joined(
    before: Sequence[Any], values: Sequence[list[float]], skipped: Sequence[bool], told: Mapping[str, Any]
) -> list[Any]:
    """Return the row of samples *before* and new *values*, by combination; the other columns are those *told* now."""
    earlier = dict(zip(COLUMNS, before, strict=False))
    kept = earlier.get("samples") if earlier.get("version") == told["version"] else None
    if not kept or len(kept) != len(values):
        kept = [None] * len(values)
    samples = [[*(old or ()), *new] for old, new in zip(kept, values, strict=True)]
    figures = [figures_of(each) for each in samples]
    row = {
        **told,
        "result": [
            figure["result"] if figure else (math.nan if is_skipped else None)
            for figure, is_skipped in zip(figures, skipped, strict=True)
        ],
        "samples": [each or None for each in samples],
        "stats_repeat": [len(each) or None for each in samples],
        **{
            f"stats_{name}": [figure and figure[name] for figure in figures]
            for name in ("ci_99_a", "ci_99_b", "q_25", "q_75")
        },
    }
    return [row.get(column) for column in COLUMNS]


def labels_of(description: Description) -> list[str]:
    """Asv's names of all combinations of a benchmark, in the order of its results."""
    if not description.parameters:
        return [description.name]
    return [f"{description.name}({', '.join(values)})" for values in product(*description.parameters)]


def figures_of(samples: Sequence[float]) -> dict[str, float | None] | None:
    """Median, quartiles and the interval of the median at 99 % from order statistics, as asv's; None without samples.

    Fewer than 8 samples have no such interval: its ends are None, which asv reads as infinite.
    """
    if not samples:
        return None
    values = np.sort(np.asarray(samples, float))
    low, high = _median_interval(len(values))
    return {
        "result": float(np.median(values)),
        "ci_99_a": None if low is None else float(values[low]),
        "ci_99_b": None if high is None else float(values[high]),
        "q_25": float(np.quantile(values, 0.25)),
        "q_75": float(np.quantile(values, 0.75)),
    }


def _median_interval(count: int) -> tuple[int | None, int | None]:
    """Return the widest cut at both ends with the median in between in 99 % of all cases."""
    below, tail = 0, math.comb(count, 0) / 2**count
    while tail <= (1 - LEVEL) / 2:
        below += 1
        tail += math.comb(count, below) / 2**count
    return (below - 1, count - below) if below else (None, None)


def with_descriptions(before: Mapping[str, Any] | None, descriptions: Sequence[Description]) -> dict[str, Any]:
    """Return `benchmarks.json` with *descriptions* replacing the entries *before* of these benchmarks."""
    told = {
        description.name: {
            "code": description.code,
            "name": description.name,
            "param_names": list(description.parameter_names),
            "params": [list(values) for values in description.parameters],
            "timeout": description.timeout or 60.0,
            "type": description.metric.value,
            "unit": description.unit,
            "version": description.version,
        }
        for description in descriptions
    }
    return {**(before or {}), **told, "version": FORMAT}
