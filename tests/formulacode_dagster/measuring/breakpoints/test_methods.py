"""Change points of series with known steps."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from bench.synthetic_steps import Score, score, synthetic_series
from formulacode_dagster.measuring.breakpoints import methods, seeded
from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.models.errors import ConfigurationError
from tests.support.clock import at_most_cpu

LIBRARIES = {Method.SEEDED: "", Method.ASV: "asv", Method.RBF: "ruptures"}
"""Requirements of a method; `make bench-lite` tries all of them, in a separate environment."""


def total(length: int, steps: int, *, series: int, correlation: float = 0.0) -> Score:
    rng = np.random.default_rng(14)
    scores = Score()
    for _ in range(series):
        values, truth = synthetic_series(rng, length, steps, correlation)
        scores += score(seeded.change_points(values).tolist(), truth.tolist())
    return scores


@pytest.mark.parametrize(("length", "steps"), [(200, 2), (500, 10), (1_000, 20)])
def test_steps_are_found_also_where_they_are_dense(length: int, steps: int) -> None:
    assert total(length, steps, series=5).f1 >= 0.95


def test_noise_has_no_steps() -> None:
    assert total(300, 0, series=40).false <= 8


def test_noise_that_wanders_is_not_taken_for_steps() -> None:
    assert total(300, 0, series=20, correlation=0.5).false <= 4


def test_outliers_are_no_levels() -> None:
    values = np.exp(np.random.default_rng(1).normal(0, 0.01, 100))
    values[[30, 31, 70]] *= 3
    assert not len(seeded.change_points(values))


def test_a_spell_of_noise_is_no_series_of_steps() -> None:
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(10):
        deviations = np.where(np.arange(400) < 300, 0.01, 0.15)
        false += len(seeded.change_points(np.exp(rng.normal(0, deviations))))
    assert false <= 5


def test_a_short_level_counts_unless_the_series_returns_to_where_it_was() -> None:
    noise = np.exp(np.random.default_rng(4).normal(0, 0.01, 130))
    returns = np.repeat([1.0, 1.4, 1.0], [60, 8, 62])
    resumable = np.repeat([1.0, 1.4, 1.9], [60, 8, 62])
    lasts = np.repeat([1.0, 1.4, 1.0], [60, 30, 40])
    assert seeded.change_points(noise * returns).tolist() == []
    assert seeded.change_points(noise * resumable).tolist() == [60, 68]
    assert seeded.change_points(noise * lasts).tolist() == [60, 90]


@pytest.mark.parametrize("place", [3, 40, 77])
def test_a_step_is_placed_exactly_when_it_is_plain(place: int) -> None:
    values = np.where(np.arange(80) < place, 1.0, 1.2)
    assert seeded.change_points(values).tolist() == [place]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 5, [2.0] * 50, [0.0] * 50])
def test_what_never_moves_has_no_steps(values: list[float]) -> None:
    assert not len(seeded.change_points(np.array(values)))


def test_levels_of_zero_and_below_are_levels() -> None:
    values = np.repeat([0.0, -3.0, 5.0], 20)
    assert seeded.change_points(values).tolist() == [20, 40]


def test_the_unit_changes_nothing() -> None:
    values, _ = synthetic_series(np.random.default_rng(3), 400, 4)
    assert seeded.change_points(values * 1e9).tolist() == seeded.change_points(values).tolist()


def test_the_time_grows_with_the_length_not_with_its_square() -> None:
    values, truth = synthetic_series(np.random.default_rng(5), 100_000, 20)
    # by the square it would take minutes
    with at_most_cpu(10):
        positions = seeded.change_points(values)
    assert score(positions.tolist(), truth.tolist()).hits == 20


@pytest.mark.parametrize("method", [Method.ASV, Method.RBF])
def test_a_library_that_is_missing_is_named(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "asv.step_detect", None)
    monkeypatch.setitem(__import__("sys").modules, "ruptures", None)
    with pytest.raises(ConfigurationError, match=f"by `{method}`.*Install (asv|ruptures)"):
        methods.change_points(np.repeat([1.0, 2.0], 20), method)


def test_rbf_refuses_what_would_never_end() -> None:
    with pytest.raises(ConfigurationError, match="square of their number"):
        methods.change_points(np.ones(methods.LONGEST_FOR_RBF + 1), Method.RBF)


@pytest.mark.parametrize(
    "method", [method for method, library in LIBRARIES.items() if not library or importlib.util.find_spec(library)]
)
def test_every_method_whose_library_is_here_tells_the_same_of_a_plain_step(method: Method) -> None:
    values = np.exp(np.random.default_rng(2).normal(0, 0.01, 60)) * np.where(np.arange(60) < 30, 1.0, 1.5)
    assert methods.change_points(values, method).tolist() == [30]
