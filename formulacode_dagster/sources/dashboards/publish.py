"""Tables as a site: the files that asv's own front end reads, and that `read_site` reads again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from formulacode_dagster.operating.files.atomic import disk_errors

from .index import INDEX, INFO, REGRESSIONS, summary_path
from .tables import SiteTables

HASH_LENGTH = 8
FRONT_END = "www"
"""The folder of asv's package with the pages that show a site."""
_PAGES = [
    ["", "Grid view", "Display as a grid"],
    ["regressions", "Show regressions", "Display information about recent regressions"],
]


def publish(site: SiteTables, folder: Path, descriptions: Mapping[str, Any], machines: Mapping[str, Any]) -> None:
    """Write *site* in published form to *folder*, replacing its content, completely or not at all.

    *descriptions* are the benchmarks, *machines* the machines, in the form of `benchmarks.json` and `machine.json`.
    Raises OutsideSystemError if the disk is full.
    """
    fresh, old = (folder.with_name(f".{folder.name}.{suffix}") for suffix in ("fresh", "old"))
    with disk_errors(str(folder)):
        for leftover in (fresh, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            if pages := _front_end():
                shutil.copytree(pages, fresh)
            for path, content in _files(site, descriptions, machines):
                place = fresh / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(content))
            if folder.exists():
                folder.rename(old)
            fresh.rename(folder)
        finally:
            for leftover in (fresh, old):
                shutil.rmtree(leftover, ignore_errors=True)


def _front_end() -> Path | None:
    """Return the folder of asv's pages, if it is installed, without importing it."""
    spec = find_spec("asv")
    pages = Path(spec.origin).parent / FRONT_END if spec and spec.origin else None
    return pages if pages and pages.is_dir() else None


def _files(site: SiteTables, descriptions: Mapping[str, Any], machines: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    environments = [json.loads(told) for told in site.series["environment"].unique(maintain_order=True)]
    keys = sorted({key for environment in environments for key in environment})
    values = {key: {environment.get(key) for environment in environments} for key in keys}
    dates = site.revisions["date"].dt.epoch("ms")
    yield (
        INDEX,
        {
            "project": site.project,
            "project_url": "#",
            "show_commit_url": site.commit_url or "#",
            "hash_length": HASH_LENGTH,
            "revision_to_hash": dict(zip(map(str, site.revisions["revision"]), site.revisions["hash"], strict=True)),
            "revision_to_date": dict(zip(map(str, site.revisions["revision"]), dates, strict=True)),
            "params": {key: sorted(found, key=lambda value: value or "") for key, found in values.items()},
            "graph_param_list": environments,
            "benchmarks": {name: descriptions[name] for name in site.benchmarks},
            "machines": dict(machines),
            "tags": {
                tag: revision
                for revision, tags in site.revisions.select("revision", "tags").iter_rows()
                for tag in tags
            },
            "pages": _PAGES,
        },
    )
    yield INFO, {"asv-version": "", "timestamp": int(datetime.now(UTC).timestamp() * 1000)}
    yield REGRESSIONS, {"regressions": []}
    for (path,), of_graph in site.series.group_by("path", maintain_order=True):
        yield str(path), _graph(site.points, of_graph)
    for (name,), rows in site.summaries.group_by("benchmark", maintain_order=True):
        yield summary_path(str(name)), rows.select("revision", "value").rows()


def _graph(points: pl.DataFrame, series: pl.DataFrame) -> list[list[Any]]:
    """Return the graph of *series*, one per combination of parameters; as in asv, it starts and ends with measured
    values.
    """
    numbers = series["series"].to_list()
    of_graph = points.filter(pl.col("series").is_in(numbers))
    wide = of_graph.pivot("series", index="revision", values="value", aggregate_function="mean").sort("revision")
    rows = [(revision, values) for revision, *values in wide.select("revision", *map(str, numbers)).iter_rows()]
    while rows and all(value is None for value in rows[0][1]):
        del rows[0]
    while rows and all(value is None for value in rows[-1][1]):
        del rows[-1]
    if len(numbers) == 1 and not series["parameters"][0].len():
        return [[revision, value] for revision, (value,) in rows]
    return [[revision, values] for revision, values in rows]
