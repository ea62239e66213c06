"""The exported grader on patches of the corpus, of which each run takes a few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.grading_packages import Package

from .corpus import ATTACKS, HONEST
from .grading import grade
from .limits import CHANCE_LIMITS, KNOWN_LIMITS, KNOWN_REFUSALS
from .patches import Attack, Honest

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]


@pytest.mark.variant("attack of the corpus", most=3)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_gets_nothing(attack: Attack, tasks: Callable[[Package], Path]) -> None:
    graded = grade(attack, tasks(attack.package))
    if attack.name in KNOWN_LIMITS:
        assert graded.fools(attack), f"it is caught now: remove it from KNOWN_LIMITS; {graded}"
    elif attack.name not in CHANCE_LIMITS or not graded.fools(attack):
        assert not graded.fools(attack), graded
        assert graded.reason in attack.reasons or attack.deserved, graded


@pytest.mark.variant("honest patch of the corpus", most=2)
@pytest.mark.parametrize("patch", HONEST, ids=lambda patch: patch.name)
def test_an_honest_patch_gets_a_reward(patch: Honest, tasks: Callable[[Package], Path]) -> None:
    graded = grade(patch, tasks(patch.package))
    if patch.name in KNOWN_REFUSALS:
        assert graded.reward == 0, f"it gets a reward now: remove it from KNOWN_REFUSALS; {graded}"
    else:
        assert (graded.reason, graded.reward > 0) == ("faster", True), graded
