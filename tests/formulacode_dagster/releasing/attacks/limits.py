"""Attacks that get a reward today, and honest patches that get none; remove an entry as soon as that has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .patches import AttackClass


@dataclass(frozen=True)
class Weakness:
    """A weakness of the grader, and the attacks of one class that use it."""

    kind: AttackClass
    why: str
    names: tuple[str, ...]
    is_chance: bool = False
    """Whether it depends on the machine that they get a reward."""


WEAKNESSES = (
    Weakness(
        AttackClass.TABLES,
        "Other inputs are made as the published ones are.",
        ("family-recognized",),
    ),
    Weakness(
        AttackClass.HARNESS,
        "A call of a few milliseconds takes no longer than what a process saves that answers without the harness.",
        ("answers-written-after-an-honest-call",),
    ),
    Weakness(
        AttackClass.MOVED,
        "Ten milliseconds in a setup hide where the speed of cores scatters.",
        ("computed-in-the-constructor", "computed-in-setup-cache", "computed-while-unpickling"),
        is_chance=True,
    ),
    Weakness(
        AttackClass.METRICS,
        "A tracked value is whatever the package says.",
        ("comparisons-not-counted", "tracked-only-while-sampled"),
    ),
)
KNOWN_LIMITS: Mapping[str, str] = {
    name: weakness.why for weakness in WEAKNESSES for name in weakness.names if not weakness.is_chance
}
"""Why each attack gets through, by its name."""
CHANCE_LIMITS: Mapping[str, str] = {
    name: weakness.why for weakness in WEAKNESSES for name in weakness.names if weakness.is_chance
}
"""The same of those that get through on some machines."""
KNOWN_REFUSALS: Mapping[str, str] = {
    "second-extension": "An extension module needs a changed setup.py, which counts only if the author changed it.",
}
"""Why each honest patch is refused, by its name."""
