"""Regressions of a site, found again from values with their intervals."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from uv import find_uv_bin

from formulacode_dagster.measuring.breakpoints.regressions import regressions_of, reproduces, with_intervals
from formulacode_dagster.sources.dashboards.site import read_site
from tests.support import regressions_by_asv
from tests.support.asv_results import result_file, write_results
from tests.support.asv_site import GRID
from tests.support.git_world import BareRepository

SERIES = pl.DataFrame(
    {"series": [0], "benchmark": ["b"], "parameters": [[]], "path": ["graphs/b.json"]},
    schema_overrides={"series": pl.UInt32, "parameters": pl.List(pl.String)},
)
REVISIONS = pl.DataFrame({"revision": [10, 20, 30, 40], "hash": ["a", "b", "c", "d"]})


def points(low: list[float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {"series": [0] * 4, "revision": [10, 20, 30, 40], "value": [1.0, 1.0, 2.0, 2.0], "low": low, "high": [2.5] * 4},
        schema_overrides={"series": pl.UInt32, "low": pl.Float64},
    )


def published(revision: int, **changes: Any) -> pl.DataFrame:
    told = {"benchmark": "b", "path": "graphs/b.json", "parameter": None, "latest": 2.0, "best": 1.0}
    row = {**told, "before_revision": 20, "after_revision": revision, "before": 1.0, "after": 2.0, **changes}
    return pl.DataFrame([row], schema_overrides={"parameter": pl.Int64, "before_revision": pl.Int64})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Requests to a stand-in for asv's step detection, which finds a step at the third value."""
    asked: list[Any] = []

    def detect_steps(values: list[float], weights: list[float] | None) -> list[tuple[Any, ...]]:
        asked.append((values, weights))
        return [(0, 2, 1.0, 1.0, 0.0), (2, 4, 2.0, 2.0, 0.0)]

    def detect_regressions(steps: list[tuple[Any, ...]], threshold: float) -> tuple[Any, ...]:
        asked.append((steps, threshold))
        return 2.0, 1.0, [(steps[0][1] - 1, steps[1][0], 1.0, 2.0)]

    stand_in = SimpleNamespace(detect_steps=detect_steps, detect_regressions=detect_regressions)
    monkeypatch.setitem(sys.modules, "asv", SimpleNamespace(step_detect=stand_in))
    monkeypatch.setitem(sys.modules, "asv.step_detect", stand_in)
    return asked


def test_asv_is_asked_with_its_own_weights_and_answers_by_revision(asked: list[Any]) -> None:
    found = regressions_of(points([0.5, 1.5, 2.25, None]))
    assert found.rows() == [(0, 2.0, 1.0, 20, 30, 1.0, 2.0)]
    values, weights = asked[0]
    assert values == [1.0, 1.0, 2.0, 2.0]
    assert weights[:3] == [1.0, 2.0, 8.0]
    assert weights[3] != weights[3]
    assert asked[1] == ([(10, 21, 1.0, 1.0, 0.0), (30, 41, 2.0, 2.0, 0.0)], 0.05)


def test_what_comes_out_again_passes_and_what_does_not_is_named(asked: list[Any]) -> None:
    known = points([0.5] * 4)
    assert reproduces(published(30), known, SERIES).passed
    # for a single commit asv reports no commit before
    assert reproduces(published(30, before_revision=None), known, SERIES).passed
    missed = reproduces(published(40), known, SERIES)
    assert (missed.passed, set(missed.offenders)) == (False, {"b at 30", "b at 40"})
    assert missed.figures == {"published": 1, "judged": 1, "again": 1, "reproduced": 0}


@pytest.mark.parametrize(
    "change", [{"before_revision": 10}, {"before": 1.1}, {"after": 2.1}, {"latest": 3}, {"best": 0}]
)
def test_another_level_or_commit_is_not_the_same(asked: list[Any], change: dict[str, float]) -> None:
    told = reproduces(published(30, **change), points([0.5] * 4), SERIES)
    assert (told.passed, told.offenders, told.figures["reproduced"]) == (False, ("b at 30",), 0)


def test_what_the_site_does_not_tell_must_not_come_out(asked: list[Any]) -> None:
    more = reproduces(published(30).clear(), points([0.5] * 4), SERIES)
    assert (more.passed, more.offenders) == (False, ("b at 30",))


def test_where_intervals_are_not_known_nothing_is_judged() -> None:
    unknown = reproduces(published(30), points([None] * 4), SERIES)
    assert (unknown.passed, unknown.figures) == (
        True,
        {"published": 1, "judged": 0, "again": 0, "reproduced": 0},
    )


def test_without_asv_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asv.step_detect", None)
    told = reproduces(published(30), points([0.5] * 4), SERIES)
    assert not told.passed
    assert "Install asv" in told.summary


def test_published_points_get_the_intervals_of_the_same_raw_values() -> None:
    raw = pl.DataFrame(
        {
            "benchmark": ["b", "b", "b"],
            "parameters": [[], [], []],
            "hash": ["a", "b", "c"],
            "value": [1.0, 7.0, 2.0],
            "low": [0.9, 6.0, 1.9],
            "high": [1.1, 8.0, 2.1],
        },
        schema_overrides={"parameters": pl.List(pl.String)},
    )
    both = with_intervals(points([None] * 4), SERIES, REVISIONS, raw)
    assert both["low"].to_list() == [0.9, None, 1.9, None]
    assert both["value"].to_list() == [1.0, 1.0, 2.0, 2.0]


WORKLOADS = 30
COMMITS = 60


def noisy_results(shas: list[str]) -> dict[str, Any]:
    """Results of *shas* by path: steps up and down in noise, with intervals as wide as it is, or none."""
    rng = random.Random(14)  # noqa: S311 - values of a test
    parameters = [[str(number) for number in range(WORKLOADS)], ["'a'"]]
    levels = [1.0] * WORKLOADS
    files = {}
    for number, sha in enumerate(shas):
        levels = [level * rng.choice([0.7, 1.3, 1.5]) if rng.random() < 0.04 else level for level in levels]
        spreads = [rng.choice([0.01, 0.05, 0.3]) for _ in levels]
        values = [level * rng.lognormvariate(0, spread) for level, spread in zip(levels, spreads, strict=True)]
        values = [None if rng.random() < 0.05 else value for value in values]
        # for few samples asv reports an infinite interval, for equal samples one without width
        widths = [rng.choice([spread, spread, spread, float("inf"), 0.0]) for spread in spreads]
        low, high = (
            [value and value * (1 + sign * width) for value, width in zip(values, widths, strict=True)]
            for sign in (-1, 1)
        )
        row = [values, parameters, None, 1_700_000_000_000, 1.0, low, high]
        files[f"i7/{sha[-8:]}-virtualenv-py3.12-numpy.json"] = result_file(sha, number, results={GRID: row})
    described = {"name": GRID, "type": "time", "unit": "seconds", "param_names": ["n", "k"], "params": parameters}
    return {**files, "benchmarks.json": {GRID: described, "version": 2}}


@pytest.mark.network
@pytest.mark.slow
def test_the_regressions_that_asv_publishes_of_raw_results_are_ours(tmp_path: Path) -> None:
    repository = BareRepository(tmp_path / "sample.git")
    marks = [repository.add(f"c{number}", 1_700_000_000 + 86_400 * number, files={}) for number in range(COMMITS)]
    by_mark = repository.write()
    shas = [by_mark[mark] for mark in marks]
    raw = write_results(tmp_path / "raw", shas, **noisy_results(shas))
    config = {"version": 1, "project": "sample", "repo": str(repository.path), "branches": ["main"]}
    (tmp_path / "asv.conf.json").write_text(json.dumps({**config, "results_dir": "raw", "html_dir": "html"}))
    asv = [find_uv_bin(), "run", "--quiet", "--no-project", "--with", "asv==0.6.6", "--python", sys.executable]
    published = subprocess.run(
        [*asv, "asv", "publish", "--no-pull"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert published.returncode == 0, published.stdout + published.stderr
    ours = subprocess.run(
        [*asv, "python", "-m", regressions_by_asv.__name__, str(raw), str(repository.path), str(tmp_path / "ours")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ours.returncode == 0, ours.stderr

    columns = ["path", "parameter", "after_revision", "before", "after", "latest", "best"]
    theirs = read_site(tmp_path / "html").regressions.select(columns).sort(columns)
    told = {name: pl.DataFrame(rows).select(columns).sort(columns) for name, rows in json.loads(ours.stdout).items()}
    assert theirs.height > WORKLOADS
    assert told["weighted"].rows() == theirs.rows()
    # intervals have their say
    assert told["unweighted"].rows() != theirs.rows()
