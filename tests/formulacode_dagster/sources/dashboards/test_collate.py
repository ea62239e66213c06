"""Raw results become the tables of a site, and a site."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from uv import find_uv_bin

from formulacode_dagster.sources.dashboards.collate import History, collate, history_of
from formulacode_dagster.sources.dashboards.faults import DashboardError, FaultKind
from formulacode_dagster.sources.dashboards.publish import publish
from formulacode_dagster.sources.dashboards.raw_results import CommitNumbering, collate_folder
from formulacode_dagster.sources.dashboards.results import read_results
from formulacode_dagster.sources.dashboards.site import read_site
from formulacode_dagster.sources.dashboards.sites import Dashboard
from formulacode_dagster.sources.dashboards.tables import FRAMES, SiteTables, tables_of
from formulacode_dagster.sources.git.history import Mirror
from tests.support.asv_results import PARAMETERS, commits, result_file, write_results
from tests.support.asv_site import GRID, MEMORY, PLAIN

FILE = f"i7/{commits(1)[0][-8:]}-virtualenv-py3.12-numpy.json"


def values(site: SiteTables, benchmark: str, place: int = 0) -> list[tuple[Any, ...]]:
    number = site.series.filter(benchmark=benchmark)["series"][place]
    return site.points.filter(series=number).select("revision", "value", "low", "high").rows()


@pytest.mark.parametrize("api", [1, 2])
def test_both_formats_become_series_with_their_intervals(api: int, tmp_path: Path) -> None:
    site = collate(read_results(write_results(tmp_path, api=api)))
    assert site.faults.is_empty()
    assert (site.graphs_expected, site.graphs_read, site.series.height) == (3, 3, 4)
    assert [value for _, value, _, _ in values(site, PLAIN)] == [2.0] * 6 + [1.0] * 6
    assert values(site, PLAIN)[0] == (0, 2.0, 1.9, 2.1)
    assert values(site, GRID, 1)[0] == (0, None, None, None)
    assert values(site, MEMORY)[11] == (11, 1000.0, None, None)
    assert site.revisions["hash"].to_list() == commits(12)
    assert {name: table.schema for name, table in tables_of(site).items()} == FRAMES


def test_what_is_in_a_folder_of_that_name_is_taken(tmp_path: Path) -> None:
    write_results(tmp_path / "results")
    assert len(read_results(tmp_path).files) == 12


def test_the_history_tells_the_order_and_what_it_lacks_is_named(tmp_path: Path) -> None:
    known = dict(zip(reversed(commits(11)), range(500, 511), strict=True))
    dates = {commits(1)[0]: datetime(2020, 1, 1, tzinfo=UTC)}
    site = collate(read_results(write_results(tmp_path)), History(known, dates, {commits(1)[0]: ["v1"]}, "trunk"))
    assert [revision for revision, *_ in values(site, PLAIN)] == list(range(500, 511))
    assert [value for _, value, *_ in values(site, PLAIN)] == [1.0] * 5 + [2.0] * 6
    assert site.revisions.row(-1) == (510, commits(1)[0], dates[commits(1)[0]], ["v1"])
    assert site.series["branch"].unique().to_list() == ["trunk"]
    assert site.faults.select("kind", "detail").rows() == [("unknown_revision", commits(12)[11])]


def test_several_results_of_one_series_are_their_mean(tmp_path: Path) -> None:
    again = result_file(commits(1)[0], 6, date=1_700_000_000_000)
    site = collate(read_results(write_results(tmp_path, **{"i7/again.json": again})))
    assert values(site, PLAIN)[0] == (0, 1.5, pytest.approx(1.4), pytest.approx(1.6))
    assert values(site, GRID, 1)[0][1] is None


def test_environments_that_differ_are_series_of_their_own(tmp_path: Path) -> None:
    other = result_file(
        commits(1)[0], 0, params={"machine": "i7", "python": "3.12", "scipy": None}, env_vars={"A": "1"}
    )
    site = collate(read_results(write_results(tmp_path, **{"i7/other.json": other})))
    assert (site.graphs_expected, site.graphs_read, site.series.height) == (6, 6, 8)
    first, second = (json.loads(told) for told in site.series["environment"].unique(maintain_order=True))
    assert first | second == {**first, **second}
    assert {(each["numpy"], each["scipy"], each["env-A"]) for each in (first, second)} == {
        ("", None, None),
        (None, "", "1"),
    }


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"<html>", FaultKind.HTML),
        (b'{"commit_hash": "ab', FaultKind.TRUNCATED),
        (b"[1]", FaultKind.MALFORMED),
        (b'{"results": {}}', FaultKind.MALFORMED),
        (json.dumps(result_file("a", 0, results={PLAIN: [["fast"], []]})).encode(), FaultKind.MALFORMED),
        (json.dumps(result_file("a", 0, results={PLAIN: [[1.0, 2.0], []]})).encode(), FaultKind.MALFORMED),
        (json.dumps(result_file("a", 0, results={PLAIN: [[1.0], [], "v0"]})).encode(), FaultKind.OTHER_VERSION),
        (json.dumps(result_file("a", 0, results={"gone": [[1.0], []]})).encode(), FaultKind.OTHER_VERSION),
        (b'{"commit_hash": "\\ud800"}', FaultKind.NOT_JSON),
    ],
)
def test_a_file_that_cannot_be_taken_is_named_and_the_others_are(
    content: bytes, kind: FaultKind, tmp_path: Path
) -> None:
    site = collate(read_results(write_results(tmp_path, **{FILE: content})))
    assert site.faults.select("path", "kind").rows() == [(FILE, kind)]
    assert len(values(site, PLAIN)) == 11


@pytest.mark.parametrize("content", [None, b"<html>", b'{"x": {"type": 1}}'])
def test_without_a_list_of_benchmarks_there_are_no_results(content: bytes | None, tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"benchmarks\.json"):
        read_results(write_results(tmp_path, **{"benchmarks.json": content}))


def test_a_failed_benchmark_is_a_point_without_a_value(tmp_path: Path) -> None:
    rows = {PLAIN: [None, [], "v1"], GRID: [[float("nan"), None], PARAMETERS]}
    failed = result_file(commits(1)[0], 0, results=rows)
    site = collate(read_results(write_results(tmp_path, **{FILE: failed})))
    assert values(site, PLAIN)[0] == (0, None, None, None)
    assert values(site, GRID)[0] == (0, None, None, None)
    assert site.faults.is_empty()


def test_what_is_published_is_what_is_read_again(tmp_path: Path) -> None:
    raw = read_results(write_results(tmp_path / "raw"))
    site = collate(raw, project="sample", commit_url="https://example.org/commit/")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "stale.json").touch()
    publish(site, tmp_path / "site", raw.descriptions, raw.machines)
    read = read_site(tmp_path / "site")
    no_intervals = [pl.lit(None, pl.Float64).alias(name) for name in ("low", "high")]
    assert read.faults.is_empty()
    assert read.points.equals(site.points.with_columns(no_intervals))
    for name in ("revisions", "summaries"):
        assert getattr(read, name).equals(getattr(site, name)), name
    assert read.series.equals(site.series)
    assert history_of(read).numbers == dict(zip(commits(12), range(12), strict=True))
    assert not (tmp_path / "site" / "stale.json").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.network
@pytest.mark.slow
def test_asv_publishes_the_same_of_the_same_results(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    for number in range(12):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"c (#{number})"], check=True)
    subprocess.run([*git, "tag", "v1", "HEAD~3"], check=True)
    made = subprocess.run([*git, "log", "--reverse", "--format=%H"], check=True, capture_output=True, text=True)
    write_results(tmp_path / "raw", made.stdout.split())
    config = {"version": 1, "project": "sample", "repo": str(repository), "branches": ["main"], "results_dir": "raw"}
    (tmp_path / "asv.conf.json").write_text(json.dumps({**config, "html_dir": "html"}))
    asv = [find_uv_bin(), "tool", "run", "--quiet", "--from", "asv==0.6.6", "asv"]
    published = subprocess.run(
        [*asv, "publish", "--no-pull"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert published.returncode == 0, published.stdout + published.stderr
    with Mirror("example/sample", repository / ".git") as mirror:
        dashboard = Dashboard(name="sample", results=str(tmp_path / "raw"))
        collated = collate_folder(dashboard, tmp_path / "site", mirror=mirror, published=None)
    assert collated.order is CommitNumbering.MIRROR
    theirs, ours = (
        {
            str(path.relative_to(site)): json.loads(path.read_text())
            for path in sorted(site.glob("graphs/**/bench.*.json"))
        }
        for site in (tmp_path / "html", tmp_path / "site")
    )
    assert len(ours) == 6
    assert ours == theirs
    index, own = (json.loads((tmp_path / site / "index.json").read_text()) for site in ("html", "site"))
    for name in ("revision_to_hash", "params", "graph_param_list", "benchmarks", "machines", "tags"):
        assert own[name] == index[name], name
