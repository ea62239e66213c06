"""Regressions of a site, found again from values with their intervals."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from formulacode_dagster.breakpoints.regressions import regressions_of, reproduces, with_intervals

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


def published(after: int) -> pl.DataFrame:
    return pl.DataFrame(
        {"benchmark": ["b"], "path": ["graphs/b.json"], "parameter": [None], "after_revision": [after]},
        schema_overrides={"parameter": pl.Int64},
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a stand-in for asv's step detection, which finds a step at the third value, was asked with."""
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
    missed = reproduces(published(40), known, SERIES)
    assert (missed.passed, missed.offenders, missed.figures["judged"]) == (False, ("b at 40",), 1)
    assert len(asked) == 4


def test_where_intervals_are_not_known_nothing_is_judged() -> None:
    unknown = reproduces(published(30), points([None] * 4), SERIES)
    assert (unknown.passed, unknown.figures) == (True, {"published": 1, "judged": 0, "reproduced": 0})


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
