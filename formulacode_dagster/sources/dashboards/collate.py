"""Raw results as the tables of a site: the data behind the graphs of `asv publish`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

import polars as pl

from . import tables
from .faults import Fault, FaultKind
from .index import SiteBenchmark, graph_path
from .results import RawResults, ResultFile
from .summaries import summary_of

Environment = tuple[tuple[str, str | None], ...]
Cell = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class History:
    """The commits of a repository, from its mirror: numbers in the order of the history, dates, tags."""

    numbers: Mapping[str, int]
    dates: Mapping[str, datetime]
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    branch: str = "main"


def collate(
    raw: RawResults, history: History | None = None, project: str = "", commit_url: str = ""
) -> tables.SiteTables:
    """The tables of *raw*, with a series for each benchmark, environment and combination of parameters.

    Several results of one series at one commit are averaged, as in asv. Without *history*, commits are numbered by the
    dates of the results. Commits that *history* lacks have no place in the order, and are reported.
    """
    faults = list(raw.faults)
    files = list(raw.files)
    if history is None:
        history = _by_dates(files)
    else:
        strangers = [file for file in files if file.commit not in history.numbers]
        faults += [Fault(file.path, FaultKind.UNKNOWN_REVISION, file.commit) for file in strangers]
        files = [file for file in files if file.commit in history.numbers]
    graphs = _graphs(raw.benchmarks, files, history, faults)
    series, points = _series_and_points(raw.benchmarks, graphs)
    revisions = _revisions({file.commit for file in files}, history)
    summaries = pl.concat(
        [pl.DataFrame(schema=tables.SUMMARIES)]
        + [
            summary_of(of_benchmark["benchmark"][0], points.join(of_benchmark.select("series"), on="series"))
            for of_benchmark in series.partition_by("benchmark", maintain_order=True)
        ]
    )
    environments = {environment for _, environment in graphs}
    return tables.SiteTables(
        project=project,
        commit_url=commit_url,
        revisions=revisions,
        series=series,
        points=points,
        summaries=summaries,
        regressions=pl.DataFrame(schema=tables.REGRESSIONS),
        faults=pl.DataFrame(
            [(fault.path, str(fault.kind), fault.detail) for fault in faults], schema=tables.FAULTS, orient="row"
        ),
        graphs_expected=len(environments) * len(raw.benchmarks),
        graphs_read=len(graphs),
        summaries_expected=len(raw.benchmarks),
        summaries_read=summaries["benchmark"].n_unique(),
        benchmarks=tuple(raw.benchmarks),
    )


def history_of(site: tables.SiteTables) -> History:
    """The commits as *site* numbers them."""
    rows = site.revisions.select("revision", "hash", "date", "tags").rows()
    return History(
        {commit: revision for revision, commit, _, _ in rows},
        {commit: date for _, commit, date, _ in rows if date is not None},
        {commit: tags for _, commit, _, tags in rows if tags},
        next(iter(site.series["branch"]), "") or "main",
    )


def _by_dates(files: Iterable[ResultFile]) -> History:
    dates = {file.commit: file.date for file in files}
    ordered = sorted(dates, key=lambda commit: (dates[commit], commit))
    return History(
        {commit: number for number, commit in enumerate(ordered)},
        {commit: datetime.fromtimestamp(date / 1000, tz=UTC) for commit, date in dates.items()},
    )


def _graphs(
    benchmarks: Mapping[str, SiteBenchmark], files: Sequence[ResultFile], history: History, faults: list[Fault]
) -> dict[tuple[str, Environment], dict[int, list[list[Cell]]]]:
    """Results by benchmark, environment and commit: a cell for each combination of parameters."""
    keys = sorted({key for file in files for key in file.environment})
    graphs: dict[tuple[str, Environment], dict[int, list[list[Cell]]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        told = {**dict.fromkeys(keys), **file.environment, "branch": history.branch}
        environment = tuple(sorted(told.items()))
        older = []
        for name, values in file.values.items():
            benchmark = benchmarks.get(name)
            if benchmark is None or values.version not in (None, benchmark.version):
                older.append(name)
                continue
            at = graphs[name, environment][history.numbers[file.commit]]
            at.append([values.by_parameters.get(of, (None, None, None)) for of in product(*benchmark.params)])
        if older:
            faults.append(Fault(file.path, FaultKind.OTHER_VERSION, ", ".join(sorted(older))[:200]))
    return graphs


def _series_and_points(
    benchmarks: Mapping[str, SiteBenchmark], graphs: Mapping[tuple[str, Environment], Mapping[int, list[list[Cell]]]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    series: list[tuple[Any, ...]] = []
    points: list[tuple[Any, ...]] = []
    order = {name: place for place, name in enumerate(benchmarks)}
    for name, environment in sorted(graphs, key=lambda key: (json.dumps(key[1]), order[key[0]])):
        benchmark, of = benchmarks[name], dict(environment)
        path = graph_path(of, name)
        at = sorted(graphs[name, environment].items())
        for place, parameters in enumerate(product(*benchmark.params)):
            number = len(series)
            told = (of.get("machine") or "", of["branch"], json.dumps(of, sort_keys=True))
            series.append((number, name, list(parameters), *told, benchmark.type, benchmark.unit, path))
            points += [(number, revision, *_mean([cells[place] for cells in runs])) for revision, runs in at]
    return (
        pl.DataFrame(series, schema=tables.SERIES, orient="row"),
        pl.DataFrame(points, schema=tables.POINTS, orient="row"),
    )


def _mean(cells: Sequence[Cell]) -> Cell:
    if len(cells) == 1:
        return cells[0]
    measured = [cell for cell in cells if cell[0] is not None]
    ends = [[value for value in column if value is not None] for column in zip(*measured, strict=True)]
    value, low, high = (sum(column) / len(column) if column else None for column in ends or ([], [], []))
    return value, low, high


def _revisions(measured: Iterable[str], history: History) -> pl.DataFrame:
    commits = sorted({*measured, *history.tags} & history.numbers.keys(), key=history.numbers.__getitem__)
    rows = [
        (history.numbers[commit], commit, history.dates.get(commit), sorted(history.tags.get(commit, ())))
        for commit in commits
    ]
    return pl.DataFrame(rows, schema=tables.REVISIONS, orient="row")
