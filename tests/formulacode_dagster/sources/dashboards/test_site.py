"""Sites in folders become tables; a broken file is reported, and affects no other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from formulacode_dagster.sources.dashboards import tables
from formulacode_dagster.sources.dashboards.faults import DashboardError, Fault, FaultKind
from formulacode_dagster.sources.dashboards.index import SiteIndex
from formulacode_dagster.sources.dashboards.site import read_site
from tests.support.asv_site import ENVIRONMENT, GRAPHS, GRID, MEMORY, PLAIN, site_content, write_site
from tests.support.clock import at_most_cpu

GRAPH = f"{GRAPHS}/{PLAIN}.json"


def faults(site: tables.SiteTables) -> list[tuple[str, str]]:
    return site.faults.select("path", "kind").rows()


def test_a_whole_site(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert faults(site) == []
    assert (site.graphs_expected, site.graphs_read, site.summaries_expected, site.summaries_read) == (3, 3, 3, 3)
    assert (site.project, site.commit_url) == ("sample", "https://example.org/commit/")
    assert site.series.select("benchmark", "parameters", "machine", "branch", "type", "unit").rows() == [
        (PLAIN, [], "i7", "main", "time", "seconds"),
        (GRID, ["1", "'a'"], "i7", "main", "time", "seconds"),
        (GRID, ["2", "'a'"], "i7", "main", "time", "seconds"),
        (MEMORY, [], "i7", "main", "peakmemory", "bytes"),
    ]
    assert json.loads(site.series["environment"][0]) == ENVIRONMENT
    measured = site.measured.filter(pl.col("revision") == 112)
    assert measured.select("benchmark", "value", "hash").rows() == [
        (PLAIN, 1.0, f"{112:040x}"),
        (GRID, 1.0, f"{112:040x}"),
        (GRID, 3.0, f"{112:040x}"),
        (MEMORY, 1000.0, f"{112:040x}"),
    ]
    assert measured["date"][0] == datetime.fromtimestamp(1_700_000_000 + 112 * 86_400, UTC)
    assert site.revisions.row(0)[3] == ["v1"]
    assert site.summaries.filter(benchmark=GRID).rows() == [(GRID, 100, 2.0), (GRID, 110, None)]
    assert site.regressions.rows() == [(PLAIN, GRAPH, None, 2.0, 1.0, None, 104, 1.0, 2.0)]


def test_every_table_has_its_schema_also_without_a_row(tmp_path: Path) -> None:
    content = site_content()["index.json"] | {"graph_param_list": [], "benchmarks": {}, "revision_to_hash": {}}
    site = read_site(write_site(tmp_path, **{"index.json": content}))
    schemas = {name.lower(): value for name, value in vars(tables).items() if isinstance(value, pl.Schema)}
    assert {name: table.schema for name, table in tables.tables_of(site).items()} == schemas


def test_tables_are_written_as_parquet(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path / "site"))
    tables.write_tables(tables.tables_of(site), tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out" / "points.parquet").equals(site.points)
    assert pl.read_parquet(tmp_path / "out" / "series.parquet").equals(site.series)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, FaultKind.ABSENT),
        (b"", FaultKind.TRUNCATED),
        (b"[[100, 1.0], [102, 1.", FaultKind.TRUNCATED),
        (b"[[100, 1.0], [102", FaultKind.TRUNCATED),
        (b"[[100, 1.0],", FaultKind.TRUNCATED),
        (b"[[100, 1.0], [102, nul", FaultKind.TRUNCATED),
        (b"<!doctype html><title>404</title>", FaultKind.HTML),
        (b"\n <html>", FaultKind.HTML),
        (b"[[100, 1.0] [102, 1.0]]", FaultKind.NOT_JSON),
        (b'[["\\ud800", 1.0]]', FaultKind.NOT_JSON),
        (b"\x80[]", FaultKind.NOT_JSON),
        (b'{"100": 1.0}', FaultKind.MALFORMED),
        (b"[[100, 1.0], [102]]", FaultKind.MALFORMED),
        (b'[[100, "fast"]]', FaultKind.MALFORMED),
        (b"[[100.5, 1.0]]", FaultKind.MALFORMED),
        (b"[[100, [1.0, 2.0]]]", FaultKind.MALFORMED),
        (b"[[99999999999999999999, 1.0]]", FaultKind.MALFORMED),
    ],
)
def test_a_graph_that_cannot_be_read_is_named_and_the_others_are_read(
    content: bytes | None, kind: FaultKind, tmp_path: Path
) -> None:
    site = read_site(write_site(tmp_path, **{GRAPH: content}))
    assert faults(site) == [(GRAPH, kind)]
    assert (site.graphs_expected, site.graphs_read) == (3, 2)
    assert site.silent_benchmarks() == [PLAIN]
    assert site.points.height == 36


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ([[100, 1.0], [100, 2.0], [102, 1.0]], FaultKind.DUPLICATE_REVISION),
        ([[102, 1.0], [100, 2.0], [104, 1.0]], FaultKind.UNORDERED),
        ([[100, 1.0], [102, 2.0], [103, 1.0]], FaultKind.UNKNOWN_REVISION),
    ],
)
def test_points_that_are_odd_are_kept_and_named(content: Any, kind: FaultKind, tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, **{GRAPH: content}))
    assert faults(site) == [(GRAPH, kind)]
    assert site.points.filter(series=0).select("revision", "value").rows() == [tuple(point) for point in content]


def test_nan_and_null_are_not_measured(tmp_path: Path) -> None:
    changes = {
        GRAPH: b"[[100, NaN], [102, null], [104, 1.0]]",
        f"{GRAPHS}/{GRID}.json": b"[[100, null], [102, [NaN, 2.0]]]",
    }
    site = read_site(write_site(tmp_path, **changes))
    assert faults(site) == []
    assert site.points.filter(series=0)["value"].to_list() == [None, None, 1.0]
    assert site.points.filter(series=1)["value"].to_list() == [None, None]
    assert site.points.filter(series=2)["value"].to_list() == [None, 2.0]


def test_values_that_do_not_fit_the_parameters_are_not_guessed(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, **{f"{GRAPHS}/{GRID}.json": [[100, [1.0, 2.0, 3.0]]]}))
    assert site.faults.rows() == [
        (f"{GRAPHS}/{GRID}.json", "malformed", "3 values a point for 2 combinations of parameters")
    ]


def test_commits_dated_before_their_predecessors_are_told(tmp_path: Path) -> None:
    content = site_content()["index.json"]
    content["revision_to_date"]["104"] = 0
    site = read_site(write_site(tmp_path, **{"index.json": content}))
    assert site.faults.rows() == [("index.json", "backwards_in_time", "1 of 12 commits")]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, FaultKind.ABSENT),
        (b"<html>", FaultKind.HTML),
        (b'{"project": "x", "bench', FaultKind.TRUNCATED),
        (b"[]", FaultKind.MALFORMED),
        (b'{"project": "x"}', FaultKind.MALFORMED),
    ],
)
def test_without_an_index_there_is_no_site(content: bytes | None, kind: FaultKind, tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"index\.json") as raised:
        read_site(write_site(tmp_path, **{"index.json": content}))
    assert raised.value.fault.kind is kind


def test_what_could_not_be_fetched_is_not_called_absent(tmp_path: Path) -> None:
    site = write_site(tmp_path, **{GRAPH: None, f"{GRAPHS}/{GRID}.json": None})
    lost = Fault(GRAPH, FaultKind.NOT_FETCHED, "HTTP 500, 5 times")
    assert faults(read_site(site, [lost])) == [(GRAPH, "not_fetched"), (f"{GRAPHS}/{GRID}.json", "absent")]


def test_regressions_as_asv_wrote_them_before_2018_are_read(tmp_path: Path) -> None:
    old = [PLAIN, GRAPH, {}, None, [[[None, 104, 1.0, 2.0]], 2.0, 1.0]]
    site = read_site(write_site(tmp_path, **{"regressions.json": {"regressions": [old]}}))
    assert site.regressions.rows() == [(PLAIN, GRAPH, None, 2.0, 1.0, None, 104, 1.0, 2.0)]


def test_more_combinations_of_parameters_than_any_memory_are_a_fault(tmp_path: Path) -> None:
    content = site_content()
    content["index.json"]["benchmarks"][GRID]["params"] = [list(map(str, range(10)))] * 10
    content[f"{GRAPHS}/{GRID}.json"] = []
    site = read_site(write_site(tmp_path, **content))
    assert (f"{GRAPHS}/{GRID}.json", "too_large") in faults(site)
    assert site.graphs_read == 2


def test_regressions_of_another_form_are_named(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, **{"regressions.json": {"regressions": [["only", "two"]]}}))
    assert faults(site) == [("regressions.json", "malformed")]
    assert "Error" not in site.faults["detail"].item()
    assert site.graphs_read == 3


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("[[100, 1.0]]")
    site = write_site(tmp_path / "site", **{GRAPH: None})
    (site / GRAPH).symlink_to(tmp_path / "secret.json")
    assert faults(read_site(site)) == [(GRAPH, "unreadable")]
    linked = write_site(tmp_path / "linked", **{f"graphs/summary/{name}.json": None for name in (PLAIN, GRID, MEMORY)})
    (linked / "graphs" / "summary").symlink_to(site / "graphs" / "summary")
    assert {kind for _, kind in faults(read_site(linked))} == {"unreadable"}


def test_paths_are_those_of_a_real_site() -> None:
    # numpy-bench, asv 0.5
    environment = {
        "arch": "x86_64",
        "cpu": "Intel(R) Core(TM) i7 CPU 920 @ 2.67GHz",
        "Cython": "0.29.21",
        "six": "",
        "setuptools": None,
    }
    index = SiteIndex(
        revision_to_hash={},
        revision_to_date={},
        graph_param_list=(environment,),
        benchmarks={"b.time": {"name": "b.time"}},
    )
    ((_, _, paths),) = index.graphs()
    assert paths == (
        "graphs/Cython-0.29.21/arch-x86_64/cpu-Intel(R) Core(TM) i7 CPU 920 @ 2.67GHz/setuptools-null/six/b.time.json",
    )


def test_a_package_from_an_address_is_found_in_old_and_new_layouts(tmp_path: Path) -> None:
    content = site_content()["index.json"]
    content["graph_param_list"] = [{"dask": "git+https://example.org/dask", "..": ""}]
    before, now = "graphs/dask-git+https:/example.org/dask", "graphs/dask-git+https___example.org_dask"
    changes = {f"{before}/{PLAIN}.json": [[100, 1.0]], f"{now}/{MEMORY}.json": [[100, 1.0]]}
    site = read_site(write_site(tmp_path, **{"index.json": content}, **changes))
    assert site.series["path"].to_list() == [f"{before}/{PLAIN}.json", f"{now}/{MEMORY}.json"]
    assert faults(site) == [(f"{now}/{GRID}.json", "absent")]


@pytest.mark.slow
def test_a_million_points_are_a_matter_of_seconds(tmp_path: Path) -> None:
    row = "[100, 1.5],"
    site = write_site(tmp_path, **{GRAPH: f"[{row * 999_999}[102, 1.5]]".encode()})
    with at_most_cpu(20):
        read = read_site(site)
    assert read.points.filter(series=0).height == 1_000_000
