"""Raw results of asv, formats 1 and 2: a file for each commit, machine and environment."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from formulacode_dagster.models.base import first_fault

from .faults import DashboardError, Fault, FaultKind, parse_json
from .folder import Folder
from .index import SiteBenchmark

BENCHMARKS, MACHINE = "benchmarks.json", "machine.json"
RESULTS = "results"
_BENCHMARKS: TypeAdapter[dict[str, SiteBenchmark]] = TypeAdapter(dict[str, SiteBenchmark])
_ALL_PARAMETERS = ("result", "stats_ci_99_a", "stats_ci_99_b")


@dataclass(frozen=True)
class Values:
    """Result of a benchmark by combination of parameters: value, and both ends of the 99 % interval."""

    by_parameters: Mapping[tuple[str, ...], tuple[float | None, float | None, float | None]]
    version: str | None


@dataclass(frozen=True)
class ResultFile:
    """A file of raw results; `environment` has the machine, Python and packages, in the words of a graph."""

    path: str
    commit: str
    date: int
    """Date of the commit, in milliseconds since 1970."""
    environment: Mapping[str, str]
    values: Mapping[str, Values]


@dataclass(frozen=True)
class RawResults:
    """All that a folder of results has."""

    benchmarks: Mapping[str, SiteBenchmark]
    descriptions: Mapping[str, Any]
    """`benchmarks.json` as it was written, for asv's own front end."""
    machines: Mapping[str, Any]
    files: tuple[ResultFile, ...]
    faults: tuple[Fault, ...]


def read_results(folder: Path) -> RawResults:
    """Read *folder*: asv's folder of results, or one with such a `results`. Unreadable files are reported.

    Raises DashboardError without a `benchmarks.json`.
    """
    if not (folder / BENCHMARKS).is_file() and (folder / RESULTS / BENCHMARKS).is_file():
        folder = folder / RESULTS
    root = Folder(folder)
    descriptions, benchmarks = _benchmarks(root)
    files: list[ResultFile] = []
    machines: dict[str, Any] = {}
    faults: list[Fault] = []
    for path in _paths(folder):
        read = _json(root, path)
        if not isinstance(read, Fault) and path.endswith(f"/{MACHINE}"):
            machines[str(read.get("machine", path.partition("/")[0]))] = read
            continue
        result = read if isinstance(read, Fault) else _result_file(path, read)
        if isinstance(result, Fault):
            faults.append(result)
        else:
            files.append(result)
    return RawResults(benchmarks, descriptions, machines, tuple(files), tuple(faults))


def _benchmarks(root: Folder) -> tuple[dict[str, Any], dict[str, SiteBenchmark]]:
    read = _json(root, BENCHMARKS)
    if not isinstance(read, Fault):
        # besides the benchmarks it has the number of its format
        descriptions = {name: value for name, value in read.items() if isinstance(value, dict)}
        try:
            return descriptions, _BENCHMARKS.validate_python(descriptions)
        except ValidationError as error:
            read = Fault(BENCHMARKS, FaultKind.MALFORMED, first_fault(error))
    raise DashboardError(root.name, read, "Name a folder of results of asv, which has a benchmarks.json")


def _paths(folder: Path) -> Iterator[str]:
    """Files of results and machines, by machine; links to other folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        if MACHINE in names:
            within = os.path.relpath(place, folder)
            yield from (f"{within}/{name}" for name in sorted(names) if name.endswith(".json") and name != BENCHMARKS)


def _json(root: Folder, path: str) -> dict[str, Any] | Fault:
    content = root.content(path)
    read = content if isinstance(content, Fault) else parse_json(path, content)
    if isinstance(read, (Fault, dict)):
        return read
    return Fault(path, FaultKind.MALFORMED, f"a {type(read).__name__} where an object was expected")


def _result_file(path: str, read: Mapping[str, Any]) -> ResultFile | Fault:
    try:
        environment = {key: "" if value is None else str(value) for key, value in read["params"].items()}
        environment |= {f"env-{key}": str(value) for key, value in (read.get("env_vars") or {}).items()}
        columns = read.get("result_columns")
        values = {
            name: _values(dict(zip(columns, row, strict=False)) if columns else _format_1(name, row, read))
            for name, row in read["results"].items()
        }
        return ResultFile(path, str(read["commit_hash"]), int(read["date"]), environment, values)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        return Fault(path, FaultKind.MALFORMED, repr(error)[:200])


def _format_1(name: str, row: Any, read: Mapping[str, Any]) -> dict[str, Any]:
    """A result of format 1 by the columns of format 2: as asv itself takes it over."""
    of = row if isinstance(row, dict) else {"result": row}
    stats = of.get("stats")
    intervals = [(each or {}).get("ci_99") or (None, None) for each in _listed(stats) or ()]
    return {
        "result": _listed(of.get("result")),
        "params": of.get("params") or [],
        "version": (read.get("benchmark_version") or {}).get(name),
        "stats_ci_99_a": [low for low, _ in intervals] or None,
        "stats_ci_99_b": [high for _, high in intervals] or None,
    }


def _listed(value: Any) -> list[Any] | None:
    return value if value is None or isinstance(value, list) else [value]


def _values(columns: Mapping[str, Any]) -> Values:
    combinations = list(product(*(map(str, values) for values in columns.get("params") or ())))
    missing = [None] * len(combinations)
    told = [[_number(value) for value in columns.get(name) or missing] for name in _ALL_PARAMETERS]
    return Values(dict(zip(combinations, zip(*told, strict=True), strict=True)), columns.get("version"))


def _number(value: Any) -> float | None:
    number = math.nan if value is None else float(value)
    return None if math.isnan(number) else number
