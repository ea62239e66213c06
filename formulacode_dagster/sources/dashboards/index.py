"""A site's `index.json`: its commits, environments and benchmarks, and the paths of their graphs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from formulacode_dagster.models.base import first_fault

from .faults import Fault, FaultKind, parse_json

INDEX = "index.json"
REGRESSIONS = "regressions.json"
INFO = "info.json"
MOST_GRAPHS = 500_000
"""Graphs that an index may list; pandas has some 100,000. A small file can list any number, each of them a request."""


class _Read(BaseModel):
    """Data of a site's index; other versions of asv have more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SiteBenchmark(_Read):
    """A benchmark as the site describes it; its parameters are texts."""

    name: str
    type: str = "time"
    unit: str = "seconds"
    param_names: tuple[str, ...] = ()
    params: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    version: str | None = None

    @property
    def combinations(self) -> int:
        """Return the number of values of a point: 1 without parameters."""
        return math.prod(len(values) for values in self.params)


Environment = Mapping[str, str | None]
"""The machine, branch, Python and packages of a graph; an empty text and None are different values."""


class SiteIndex(_Read):
    """Contents of a site according to its index."""

    project: str = ""
    show_commit_url: str = ""
    revision_to_hash: dict[int, str]
    revision_to_date: dict[int, int] = Field(description="milliseconds since 1970")
    graph_param_list: tuple[Environment, ...]
    benchmarks: dict[str, SiteBenchmark]
    tags: dict[str, int] = Field(default_factory=dict)

    @property
    def graph_count(self) -> int:
        """Return the number of graphs that the site may have."""
        return len(self.graph_param_list) * len(self.benchmarks)

    def graphs(self) -> Iterator[tuple[Environment, SiteBenchmark, tuple[str, ...]]]:
        """Iterate over every graph that the site may have, with the paths that versions of asv use for it."""
        for environment in self.graph_param_list:
            folders = _folders(environment)
            for name, benchmark in self.benchmarks.items():
                file = f"{_sanitized(name)}.json"
                yield environment, benchmark, tuple(f"{folder}/{file}" for folder in folders)

    def summaries(self) -> Iterator[tuple[SiteBenchmark, str]]:
        """The summary of each benchmark, over all environments and parameters."""
        for name, benchmark in self.benchmarks.items():
            yield benchmark, summary_path(name)


def graph_path(environment: Environment, benchmark: str) -> str:
    """Return the path of the graph of *benchmark* in *environment*."""
    return f"{_folders(environment)[0]}/{_sanitized(benchmark)}.json"


def summary_path(benchmark: str) -> str:
    """Return the path of the summary of *benchmark*."""
    return f"graphs/summary/{_sanitized(benchmark)}.json"


def parse_index(content: bytes) -> SiteIndex | Fault:
    """Return the index in *content*, or its fault."""
    read = parse_json(INDEX, content)
    if isinstance(read, Fault):
        return read
    try:
        index = SiteIndex.model_validate(read)
    except ValidationError as error:
        return Fault(INDEX, FaultKind.MALFORMED, first_fault(error))
    if index.graph_count > MOST_GRAPHS:
        return Fault(
            INDEX, FaultKind.TOO_LARGE, f"it lists {index.graph_count:,} graphs; at most {MOST_GRAPHS:,} are read"
        )
    return index


_FORBIDDEN_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def _sanitized(name: str) -> str:
    return _FORBIDDEN_IN_NAMES.sub("_", name)


def _folders(environment: Environment) -> tuple[str, ...]:
    """Return the folders of graphs of *environment*: the current form, and the one before asv replaced slashes."""
    parts = sorted(_part(key, value) for key, value in environment.items())
    now = "/".join(("graphs", *(_sanitized(part) for part in parts if part not in _NO_FOLDERS)))
    pieces = (piece for part in parts for piece in part.split("/"))
    before = "/".join(("graphs", *(piece for piece in pieces if piece not in _NO_FOLDERS)))
    return (now,) if now == before else (now, before)


_NO_FOLDERS = frozenset({"", ".", ".."})


def _part(key: str, value: str | None) -> str:
    if value is None:
        return f"{key}-null"
    return f"{key}-{value}" if value else key
