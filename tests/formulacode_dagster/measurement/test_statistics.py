import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulacode_dagster.measurement.statistics import (
    cliffs_delta,
    geometric_mean,
    holm,
    mann_whitney,
    smallest_p_value,
)

few_values = st.lists(st.integers(1, 4).map(float), min_size=1, max_size=5)
distinct = st.lists(st.floats(1e-9, 1e3), min_size=4, max_size=20, unique=True)


def by_enumeration(first, second):
    """The definition, written out: every way to call as many of the values the first side."""
    values = [*first, *second]

    def statistic(chosen):
        rest = [i for i in range(len(values)) if i not in chosen]
        return sum((values[i] > values[j]) + (values[i] == values[j]) / 2 for i in chosen for j in rest)

    observed = statistic(range(len(first)))
    found = [statistic(chosen) for chosen in itertools.combinations(range(len(values)), len(first))]
    lower = sum(value <= observed for value in found) / len(found)
    upper = sum(value >= observed for value in found) / len(found)
    return min(1.0, 2 * min(lower, upper))


@given(few_values, few_values)
@settings(max_examples=60, deadline=None)
def test_with_ties_the_p_value_is_that_of_full_enumeration(first, second):
    assert mann_whitney(first, second) == pytest.approx(by_enumeration(first, second), abs=1e-12)


@given(distinct, st.data())
@settings(max_examples=60, deadline=None)
def test_without_ties_the_p_value_is_scipys_exact_one(values, data):
    # not for every process that collects the tests: it takes a second
    from scipy.stats import mannwhitneyu

    cut = data.draw(st.integers(2, len(values) - 2))
    first, second = values[:cut], values[cut:]
    exact = mannwhitneyu(first, second, alternative="two-sided", method="exact").pvalue
    assert mann_whitney(first, second) == pytest.approx(exact, abs=1e-12)


@given(distinct, distinct)
@settings(max_examples=30, deadline=None)
def test_the_sides_can_be_exchanged(first, second):
    assert mann_whitney(first, second) == pytest.approx(mann_whitney(second, first))
    assert cliffs_delta(first, second) == -cliffs_delta(second, first)


def test_separated_sides_of_seven_reach_the_smallest_p_value():
    p = mann_whitney([2.0 + i for i in range(7)], [1.0 + i / 10 for i in range(7)])
    assert p == pytest.approx(smallest_p_value(7)) == pytest.approx(2 / 3432)


def test_equal_samples_are_no_difference():
    assert mann_whitney([1.0] * 7, [1.0] * 7) == 1.0
    assert cliffs_delta([1.0] * 7, [1.0] * 7) == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="finite"):
        mann_whitney([1.0, value], [2.0])


def test_an_empty_side_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        mann_whitney([], [2.0])


def test_cliffs_delta_is_positive_when_the_second_is_faster():
    assert cliffs_delta([3.0, 4.0], [1.0, 2.0]) == 1.0
    assert cliffs_delta([1.0, 3.0], [2.0, 2.0]) == 0.0


def test_the_geometric_mean_of_twice_and_half_is_one():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([]) == 1.0


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_reverses_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
