import math

import numpy as np
import pytest

from formulacode_dagster.measuring.measurement.statistics.intervals import (
    block_resamples,
    expanded_tail,
    interval_of,
    needed_units,
)


def test_few_units_give_wide_tails_and_many_the_normal_distribution():
    assert expanded_tail(0.025, 8) == pytest.approx(0.0057, abs=5e-4)
    assert expanded_tail(0.025, 10_000) == pytest.approx(0.025, rel=0.01)


def test_an_interval_of_few_blocks_covers_the_truth_as_often_as_it_says():
    generator = np.random.RandomState(1)
    weights = block_resamples(8)
    bounds = [interval_of(weights @ generator.normal(0, 1, 8), level=0.95, units=8) for _ in range(400)]
    assert sum(low <= 0 <= high for low, high in bounds) >= 0.93 * 400


def test_one_unit_says_nothing():
    assert interval_of(np.ones(10), level=0.95, units=1) == (-math.inf, math.inf)


def test_half_the_margin_takes_four_times_the_units():
    assert needed_units(0.1, 0.01) == pytest.approx(385, abs=3)
    assert needed_units(0.1, 0.005) == pytest.approx(4 * 385, abs=12)
    assert needed_units(1e-9, 0.05) == 2
    with pytest.raises(ValueError, match="that narrow"):
        needed_units(0.1, 0.0)
