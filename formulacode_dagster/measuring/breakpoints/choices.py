"""Choices of a caller, separate from the numerical code, for commands that only name them."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """Method of change point detection."""

    SEEDED = "seeded"
    ASV = "asv"
    RBF = "rbf"


MINIMUM_CHANGE = 0.05
"""Smallest reported relative change: asv's own threshold of regressions."""

WITHIN = 5
"""Commits between two breakpoints that are the same all the same: machines measure different ones."""
