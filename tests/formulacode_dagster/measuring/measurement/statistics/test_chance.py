import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulacode_dagster.measuring.measurement.statistics.chance import (
    clopper_pearson,
    sign_flip_p,
    sign_flips,
    smallest_sign_flip_p,
    step_down_p,
)

# a second and a half of imports, in one process of a run
BESIDE_SCIPY = pytest.mark.xdist_group("scipy.stats")

few = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=8)


@given(few)
@settings(max_examples=60, deadline=None)
def test_a_sign_flip_p_value_is_that_of_full_enumeration(differences):
    """The definition, written out; ties count."""
    sums = [sum(s * d for s, d in zip(signs, map(abs, differences), strict=True)) for signs in
            itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    expected = sum(total >= sum(differences) - 1e-9 for total in sums) / len(sums)
    assert sign_flip_p(differences) == pytest.approx(expected)


@pytest.mark.slow
@BESIDE_SCIPY
def test_it_is_scipys():
    from scipy.stats import permutation_test

    differences = list(np.random.RandomState(1).normal(0.3, 1, 10))
    exact = permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    assert sign_flip_p(differences) == pytest.approx(exact.pvalue)


def test_differences_that_all_point_one_way_reach_the_smallest_p_value():
    assert sign_flip_p([0.1, 0.2, 0.3] * 4) == smallest_sign_flip_p(12) == 2**-12
    assert sign_flip_p([-0.1, -0.2, -0.3]) == 1.0


def test_beyond_enumeration_signs_are_drawn_including_the_observed():
    assert sign_flip_p([1.0] * 32) == 2**-32
    many = sign_flip_p([1.0] * 40, seed=3)
    assert 0 < many < 1e-4
    assert many == sign_flip_p([1.0] * 40, seed=3)
    noise = list(np.random.RandomState(2).normal(0, 1, 40))
    assert sign_flip_p(noise) == pytest.approx(sign_flip_p(noise, seed=9), abs=0.01)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_a_test_needs_finite_differences(values):
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p(values)


def test_step_down_corrects_the_first_over_all_and_the_last_alone():
    generator = np.random.RandomState(5)
    values = generator.normal(0, 1, (10, 3))
    values[:, 0] += 3
    flips = sign_flips(10)
    corrected = step_down_p(flips, values)
    alone = [sign_flip_p(list(values[:, column])) for column in range(3)]
    assert corrected[0] < 0.01
    assert all(adjusted >= single - 1e-12 for adjusted, single in zip(corrected, alone, strict=True))
    order = sorted(range(3), key=lambda index: alone[index])
    assert corrected[order[0]] <= corrected[order[1]] <= corrected[order[2]]


def test_workloads_that_move_together_cost_nothing():
    """Where Holm's correction would multiply by their number."""
    column = np.random.RandomState(6).normal(0.8, 1, (10, 1))
    assert step_down_p(sign_flips(10), np.repeat(column, 5, axis=1)) == pytest.approx(
        [sign_flip_p(list(column[:, 0]))] * 5
    )


def test_step_down_holds_its_level_over_all_workloads():
    generator = np.random.RandomState(7)
    flips = sign_flips(8)
    hits = sum(min(step_down_p(flips, generator.normal(0, 1, (8, 10)))) <= 0.05 for _ in range(400))
    assert clopper_pearson(hits, 400)[0] <= 0.05


@pytest.mark.slow
@BESIDE_SCIPY
@pytest.mark.parametrize(("hits", "trials"), [(0, 299), (1, 473), (3, 10), (10, 10)])
def test_an_interval_of_a_share_is_the_exact_one(hits, trials):
    from scipy.stats import binomtest

    level = 0.90 if hits in {0, trials} else 0.95
    exact = binomtest(hits, trials).proportion_ci(level, "exact")
    assert clopper_pearson(hits, trials) == pytest.approx((exact.low, exact.high))


def test_none_of_299_bounds_a_share_at_one_percent():
    assert clopper_pearson(0, 299)[1] <= 0.01 < clopper_pearson(0, 298)[1] + 1e-4
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(1, 0)
