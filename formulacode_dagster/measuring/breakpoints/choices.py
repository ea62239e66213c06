"""Choices of a caller, separate from the numerical code, for commands that only name them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from formulacode_dagster.models.errors import ConfigurationError


class Method(StrEnum):
    """Method of change point detection."""

    SEEDED = "seeded"
    ASV = "asv"
    RBF = "rbf"


def methods_named(names: Iterable[str]) -> list[Method]:
    """Return the methods called *names*, each once; raises ConfigurationError for an unknown one."""
    distinct = list(dict.fromkeys(names))
    if strangers := [name for name in distinct if name not in list(Method)]:
        raise ConfigurationError(f"{strangers[0]} is not a method", remedy=f"Use some of {', '.join(Method)}")
    return [Method(name) for name in distinct]


MINIMUM_CHANGE = 0.05
"""Smallest reported relative change: asv's own threshold of regressions."""

WITHIN = 5
"""Commits between two breakpoints that are the same all the same: machines measure different ones."""
