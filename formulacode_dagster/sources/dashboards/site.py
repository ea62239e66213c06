"""Read a site from a folder: a clone of a `gh-pages` branch, or the result of `download`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from . import tables
from .faults import DashboardError, Fault, FaultKind, parse_json
from .folder import Folder
from .graphs import Graph, parse_graph
from .index import INDEX, REGRESSIONS, Environment, SiteBenchmark, SiteIndex, parse_index


def read_site(folder: Path, not_fetched: Sequence[Fault] = ()) -> tables.SiteTables:
    """Read the tables of the site in *folder*. Faults of single files are in its `faults`.

    Files that a download could not fetch (*not_fetched*) are reported as such instead of absent.

    Raises DashboardError without an index.
    """
    reader = _Reader(folder)
    index = reader.index()
    _read_graphs(reader, index)
    summaries = [(benchmark.name, reader.graph(path, None)) for benchmark, path in index.summaries()]
    regressions = _regressions(reader)
    points = reader.points()
    reader.name_unknown(points, set(index.revision_to_hash))
    reader.faults += _backwards_in_time(index)
    lost = {fault.path for fault in not_fetched}
    faults = [*not_fetched, *(at for at in reader.faults if at.kind is not FaultKind.ABSENT or at.path not in lost)]
    read = [(name, graph) for name, graph in summaries if graph is not None]
    return tables.SiteTables(
        project=index.project,
        commit_url=index.show_commit_url.replace("#", ""),
        revisions=_revisions(index),
        series=reader.series(),
        points=points,
        summaries=_summaries(read),
        regressions=regressions,
        faults=pl.DataFrame(
            [(fault.path, str(fault.kind), fault.detail) for fault in faults], schema=tables.FAULTS, orient="row"
        ),
        graphs_expected=len(index.graph_param_list) * len(index.benchmarks),
        graphs_read=reader.graphs_read,
        summaries_expected=len(index.benchmarks),
        summaries_read=len(read),
        benchmarks=tuple(index.benchmarks),
    )


class _Reader:
    """Files of a folder, and the faults found so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)
        self.faults: list[Fault] = []
        self.graphs_read = 0
        self._rows: list[tuple[Any, ...]] = []
        self._graphs: list[Graph] = []
        # of the environment of the last graph
        self._environment: Environment = {}
        self._told = "{}"

    def index(self) -> SiteIndex:
        content = self.folder.content(INDEX)
        index = parse_index(content) if isinstance(content, bytes) else content
        if isinstance(index, Fault):
            raise DashboardError(self.folder.name, index, "Name the folder of an asv site, which has an index.json")
        return index

    def graph(self, path: str, combinations: int | None) -> Graph | None:
        """Read the graph at *path*; faults are recorded."""
        content = self.folder.content(path)
        if isinstance(content, Fault):
            self.faults.append(content)
            return None
        graph, faults = parse_graph(path, content, combinations)
        self.faults += faults
        return graph

    def add(self, environment: Environment, benchmark: SiteBenchmark, path: str, graph: Graph) -> None:
        self.graphs_read += 1
        self._graphs.append(graph)
        if environment is not self._environment:
            self._environment, self._told = environment, json.dumps(environment, sort_keys=True)
        machine, branch = environment.get("machine") or "", environment.get("branch") or ""
        of = (machine, branch, self._told, benchmark.type, benchmark.unit)
        self._rows += [(benchmark.name, list(parameters), *of, path) for parameters in product(*benchmark.params)]

    def series(self) -> pl.DataFrame:
        rows = [(number, *row) for number, row in enumerate(self._rows)]
        return pl.DataFrame(rows, schema=tables.SERIES, orient="row")

    def points(self) -> pl.DataFrame:
        widths = np.array([graph.values.shape[1] for graph in self._graphs], np.int64)
        lengths = np.repeat(_lengths(self._graphs), widths)
        revisions = (np.tile(graph.revisions, graph.values.shape[1]) for graph in self._graphs)
        return _points(
            {
                "series": np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths),
                "revision": np.concatenate([np.empty(0, np.int64), *revisions]),
                "value": np.concatenate([np.empty(0), *(graph.values.T.ravel() for graph in self._graphs)]),
            },
            tables.POINTS,
        )

    def name_unknown(self, points: pl.DataFrame, known: set[int]) -> None:
        unknown = set(points["revision"].unique()) - known
        if not unknown:
            return
        series = points.filter(pl.col("revision").is_in(sorted(unknown)))["series"].unique(maintain_order=True)
        paths = dict.fromkeys(self._rows[number][-1] for number in series)
        self.faults += [Fault(path, FaultKind.UNKNOWN_REVISION) for path in paths]


def _read_graphs(reader: _Reader, index: SiteIndex) -> None:
    for environment, benchmark, paths in index.graphs():
        path = reader.folder.present(paths)
        graph = reader.graph(path, benchmark.combinations if benchmark.params else None)
        if graph is not None:
            reader.add(environment, benchmark, path, graph)


def _points(columns: Mapping[str, Any], schema: pl.Schema) -> pl.DataFrame:
    told = pl.DataFrame(columns, schema={name: schema[name] for name in columns})
    missing = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in columns]
    return told.with_columns(pl.col("value").fill_nan(None), *missing)


def _summaries(read: Sequence[tuple[str, Graph]]) -> pl.DataFrame:
    graphs = [graph for _, graph in read]
    names = pl.Series([name for name, _ in read], dtype=pl.String)
    return _points(
        {
            "benchmark": names.gather(np.repeat(np.arange(len(graphs)), _lengths(graphs))),
            "revision": np.concatenate([np.empty(0, np.int64), *(graph.revisions for graph in graphs)]),
            "value": np.concatenate([np.empty(0), *(graph.values.ravel() for graph in graphs)]),
        },
        tables.SUMMARIES,
    )


def _lengths(graphs: Sequence[Graph]) -> NDArray[np.int64]:
    return np.array([len(graph.revisions) for graph in graphs], np.int64)


def _revisions(index: SiteIndex) -> pl.DataFrame:
    tags: dict[int, list[str]] = {}
    for name, revision in index.tags.items():
        tags.setdefault(revision, []).append(name)
    rows = [
        (revision, commit, index.revision_to_date.get(revision), sorted(tags.get(revision, ())))
        for revision, commit in sorted(index.revision_to_hash.items())
    ]
    flat = {**tables.REVISIONS, "date": pl.Int64()}
    return pl.DataFrame(rows, schema=flat, orient="row").cast(tables.REVISIONS)


def _backwards_in_time(index: SiteIndex) -> list[Fault]:
    dates = [date for _, date in sorted(index.revision_to_date.items())]
    backwards = sum(later < earlier for earlier, later in pairwise(dates))
    return [Fault(INDEX, FaultKind.BACKWARDS_IN_TIME, f"{backwards} of {len(dates)} commits")] if backwards else []


def _regressions(reader: _Reader) -> pl.DataFrame:
    """The site's own regressions; a site without any has no such file, or an empty one."""
    content = reader.folder.content(REGRESSIONS)
    read = parse_json(REGRESSIONS, content) if isinstance(content, bytes) else content
    rows: list[tuple[Any, ...]] = []
    if not isinstance(read, Fault):
        try:
            for benchmark, path, _, parameter, *found in read["regressions"]:
                # five fields: asv before 2018
                jumps, latest, best = found[0] if len(found) == 1 else (found[2], found[0], found[1])
                rows += [(benchmark, path, parameter, latest, best, *jump) for jump in jumps or ()]
            return pl.DataFrame(rows, schema=tables.REGRESSIONS, orient="row")
        except (LookupError, TypeError, ValueError, pl.exceptions.PolarsError):
            read = Fault(REGRESSIONS, FaultKind.MALFORMED, "its regressions are not of asv's form")
    reader.faults.append(read)
    return pl.DataFrame(schema=tables.REGRESSIONS)
