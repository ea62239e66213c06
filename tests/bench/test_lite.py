"""The scorer counts right, the synthetic series are what they say, and the baseline reads what we read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.lite import grid_scores, told
from bench.synthetic_site import GRAPHS, ROWS, write_site
from bench.synthetic_steps import Score, score, synthetic_series
from formulacode_dagster.sources.dashboards.site import read_site


@pytest.mark.parametrize(
    ("positions", "truth", "counted"),
    [
        ([], [], Score(0, 0, 0)),
        ([50], [50], Score(1, 0, 0)),
        ([45, 56], [50], Score(1, 1, 0)),
        ([48, 52], [50], Score(1, 1, 0)),
        ([50], [46, 54], Score(1, 0, 1)),
        ([49, 53], [50, 52], Score(2, 0, 0)),
        ([10], [50], Score(0, 1, 1)),
    ],
)
def test_a_step_is_found_once_and_within_the_margin(positions: list[int], truth: list[int], counted: Score) -> None:
    assert score(positions, truth) == counted


def test_scores_add_up() -> None:
    assert Score().f1 == 1.0
    assert (Score(3, 1, 0) + Score(0, 0, 1)).f1 == pytest.approx(0.75)


def test_a_series_has_its_steps_and_is_the_same_by_its_seed() -> None:
    values, truth = synthetic_series(np.random.default_rng(1), 400, 4)
    again, _ = synthetic_series(np.random.default_rng(1), 400, 4)
    assert np.array_equal(values, again)
    assert len(truth) == 4
    assert np.diff([0, *truth, 400]).min() >= 400 // 5 // 3
    levels = [np.median(part) for part in np.split(values, truth)]
    assert all(1.08 < max(pair) / min(pair) < 1.45 for pair in pairwise(levels))


def test_who_finds_nothing_is_right_only_where_there_is_nothing() -> None:
    scores = grid_scores({"none": lambda _values: []}, cells=[(200, 0), (200, 2)])
    assert {cell: score["none"] for cell, score in scores.items()} == {
        "200/0": 1.0,
        "200/0 wandering": 1.0,
        "200/2": 0.0,
        "200/2 wandering": 0.0,
        "all": 0.0,
    }


def test_methods_are_scored_by_the_steps_that_are_told() -> None:
    values = np.repeat([1.0, 1.02, 1.5], 10)
    assert told(lambda _values: [10, 20])(values) == [20]


@pytest.mark.slow
def test_the_synthetic_site_is_whole(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert (site.graphs_read, site.graphs_expected, site.points.height) == (GRAPHS, GRAPHS, ROWS)
    assert site.faults.is_empty()
