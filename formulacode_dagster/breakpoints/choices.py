"""What a caller chooses: kept apart from the numbers, for commands that only name them."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """How change points are found."""

    SEEDED = "seeded"
    ASV = "asv"
    RBF = "rbf"


MINIMUM_CHANGE = 0.05
"""The least relative change that is told: asv's own threshold of regressions."""
