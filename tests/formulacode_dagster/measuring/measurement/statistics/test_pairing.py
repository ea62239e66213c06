"""Simulations of the test by pairs of builds: the level that it promises, and what exchanged labels would find."""

import itertools

import numpy as np
import pytest

from formulacode_dagster.measuring.measurement.plan import LOOKS
from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson, sign_flips
from formulacode_dagster.measuring.measurement.statistics.contrasts import bounded

TASKS = 2000
NOISE = 0.01
LAYOUTS = {
    "3 %": lambda state, shape: state.normal(0, 0.03, shape),
    "10 % in 30 % of builds": lambda state, shape: np.log(1.1) * (state.uniform(size=shape) < 0.3),
}


def simulated(state, layout, moments, *, speedup=1.0, builds, rounds=1):
    """Logarithms of seconds, tasks by arm by build by round: builds of one number meet the same moments of the core."""
    of_builds = LAYOUTS[layout](state, (TASKS, 2, builds, 1))
    of_moments = state.normal(0, moments, (TASKS, 1, builds, rounds))
    noise = state.normal(0, NOISE, (TASKS, 2, builds, rounds)) + state.exponential(NOISE, (TASKS, 2, builds, rounds))
    return of_builds + of_moments + noise - np.log(speedup) * np.array([0, 1])[:, None, None]


def share(weights, values):
    """P-values of tasks (rows), by all relabellings *weights*."""
    statistics = values @ weights.T
    return (statistics >= statistics[:, :1] - 1e-12).mean(axis=1)


def claimed(differences, looks=LOOKS):
    """Tasks claimed at any interim analysis, by sign flips of their blocks."""
    found = np.zeros(len(differences), bool)
    for look in looks:
        if look.alpha:
            seen = bounded(differences[:, : look.units].T).T
            found |= share(sign_flips(look.units), seen) <= look.alpha
    return found


def by_pairs(state, layout, moments, **effect):
    base, oracle = np.moveaxis(simulated(state, layout, moments, builds=LOOKS[-1].units, **effect)[..., 0], 1, 0)
    return claimed(base - oracle)


def by_groups(state, layout, moments, **effect):
    """Seven builds an arm in three rounds, labels exchanged among all: as many processes as 21 pairs have."""
    taken = simulated(state, layout, moments, builds=7, rounds=3, **effect)
    units = (taken - np.median(taken, axis=(1, 2), keepdims=True)).mean(axis=3).reshape(TASKS, 14)
    ways = itertools.combinations(range(14), 7)
    weights = np.array([[1 if place in way else -1 for place in range(14)] for way in ways]) / 7
    return share(weights, units) <= 0.01


@pytest.mark.parametrize("moments", [0.0, 0.06])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_patches_without_effect_no_more_than_promised_are_claimed(layout, moments):
    claims = int(by_pairs(np.random.RandomState(1), layout, moments).sum())
    low, _ = clopper_pearson(claims, TASKS)
    assert claims > 0
    assert low <= sum(look.alpha for look in LOOKS)


@pytest.mark.parametrize("speedup", [1.1, 1.2])
@pytest.mark.parametrize("moments", [0.0, 0.06])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pairs_find_no_less_than_groups_of_builds_do(layout, moments, speedup):
    pairs, groups = (
        test(np.random.RandomState(2), layout, moments, speedup=speedup).mean() for test in (by_pairs, by_groups)
    )
    assert pairs >= 0.95
    assert pairs >= groups - 0.002


def test_binaries_built_twice_break_the_level_unless_in_one_block():
    """The base's linker gave every layout twice: what one of them does to its time, two blocks show."""
    state = np.random.RandomState(3)
    base, oracle = np.moveaxis(simulated(state, "3 %", 0.0, builds=16)[..., 0], 1, 0)
    base[:, 1::2] += base[:, ::2] - base[:, 1::2]
    differences = base - oracle
    apart, together = (
        int((share(sign_flips(blocks), taken) <= 0.01).sum())
        for blocks, taken in ((16, differences), (8, differences.reshape(TASKS, 8, 2).mean(axis=2)))
    )
    assert clopper_pearson(apart, TASKS)[0] > 0.01
    assert clopper_pearson(together, TASKS)[0] <= 0.01
