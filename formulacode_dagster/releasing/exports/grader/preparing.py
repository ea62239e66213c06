"""Work that is moved out of timed calls: imports and setups of the agent's code that take longer by what calls save."""

from __future__ import annotations

import math

from .judging import median, sign_flip_p
from .places import AGENT, ARMS

LEAST_SHARE = 0.5
"""The share of a call's savings that may be spent on preparing it."""
LEAST_SECONDS, LEAST_PART = 0.001, 0.02
"""What is not looked at: so many seconds, and so much of what preparing takes on the base."""
TRIMMED = 0.2
"""The share of differences left out at either end: other load makes a few of them large."""
LEVEL, AUTHORS_LEVEL, CLEAR = 0.005, 0.03, 0.05
"""Levels at which preparing takes longer than on the other arms together, longer than with the author's patch, and not
longer.
"""


def at_one_pace(seconds: dict[str, list[float]], paces: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return CPU *seconds* of processes as if their core had always run at the usual one of *paces*.

    A pace is the CPU seconds of a fixed piece of work next to the process. On a shared machine, equal processes were
    seen to take from 120 to 200 ms, and most of them 170 to 190 ms at one pace.
    """
    usual = median([pace for of_arm in paces.values() for pace in of_arm])
    return {arm: [each * usual / pace for each, pace in zip(of_arm, paces[arm])] for arm, of_arm in seconds.items()}


def is_moved(prepared: dict[str, list[float]], saved: float, level: float = LEVEL) -> bool | None:
    """Return True if *prepared*, seconds of each round, is longer for the agent by most of what calls *saved*.

    It has to be longer than on every other arm, the author's too, by more than the bases differ, and too often for
    chance. None if more rounds could tell.
    """
    longer = {other: difference(prepared, AGENT, other) for other in ARMS if other != AGENT}
    visible = max(LEAST_SECONDS, LEAST_PART * median(prepared["base"]))
    noise = abs(_trimmed_mean(difference(prepared, "control", "base")))
    limit = max(visible, noise, LEAST_SHARE * saved)
    together = [math.fsum(each) / len(each) for each in zip(*longer.values())]
    if min(map(_trimmed_mean, longer.values())) > limit:
        if sign_flip_p(together) <= level and sign_flip_p(longer["oracle"]) <= max(AUTHORS_LEVEL, level):
            return True
    elif any(sign_flip_p([limit - seconds for seconds in each]) <= CLEAR for each in (together, longer["oracle"])):
        return False
    return None if saved > visible else False


def difference(seconds: dict[str, list[float]], arm: str, other: str) -> list[float]:
    """Return by how much *arm* took longer than *other* in each round."""
    return [mine - others for mine, others in zip(seconds[arm], seconds[other])]


def _trimmed_mean(values: list[float]) -> float:
    left_out = int(TRIMMED * len(values))
    kept = sorted(values)[left_out : len(values) - left_out]
    return math.fsum(kept) / len(kept)
