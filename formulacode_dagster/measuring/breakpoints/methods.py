"""Methods of change point detection. All take finite values in order, and return positions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from formulacode_dagster.models.errors import ConfigurationError

from . import seeded
from .choices import Method
from .seeded import Floats, Positions

LONGEST_FOR_RBF = 20_000
"""Points up to which a method that takes the square of their number ends within a minute or so."""
RBF_PENALTY = 3.0


def change_points(values: Floats, method: Method = Method.SEEDED, weights: Floats | None = None) -> Positions:
    """The positions at which *values* begin a new level, ascending, without 0.

    *weights* are inverse widths of intervals, used only by `asv`. Raises ConfigurationError if the method's library is
    missing, or cannot process so many points.
    """
    return _METHODS[method](values, weights)


def _by_seeded_intervals(values: Floats, weights: Floats | None) -> Positions:  # noqa: ARG001 - one form for all
    return seeded.change_points(values)


def _by_asv(values: Floats, weights: Floats | None) -> Positions:
    """The steps that `asv publish` shows: weighted L1 Potts, with its penalty chosen by AR(1)."""
    detect_steps = library("asv.step_detect", Method.ASV).detect_steps
    steps = detect_steps(values.tolist(), None if weights is None else weights.tolist())
    return np.array([left for left, *_ in steps[1:]], np.int64)


def _by_rbf(values: Floats, weights: Floats | None) -> Positions:  # noqa: ARG001 - one form for all
    """The kernel method of ruptures, with every position tried and the penalty growing with the logarithm."""
    if len(values) > LONGEST_FOR_RBF:
        raise ConfigurationError(
            f"cannot find the steps of {len(values):,} points by `rbf`",
            why=f"it takes the square of their number; {LONGEST_FOR_RBF:,} is the most",
            remedy=f"Use `{Method.SEEDED}`",
        )
    if len(values) < 2 * seeded.SHORTEST_SEGMENT or values.min() == values.max():
        return np.empty(0, np.int64)
    kernel = library("ruptures", Method.RBF).KernelCPD(kernel="rbf", min_size=seeded.SHORTEST_SEGMENT, jump=1)
    ends = kernel.fit(values.reshape(-1, 1)).predict(pen=RBF_PENALTY * np.log(len(values)))
    return np.array(ends[:-1], np.int64)


_METHODS: dict[Method, Callable[[Floats, Floats | None], Positions]] = {
    Method.SEEDED: _by_seeded_intervals,
    Method.ASV: _by_asv,
    Method.RBF: _by_rbf,
}


def library(module: str, method: Method) -> Any:
    """Return the *module* that *method* needs; raises ConfigurationError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"cannot find steps by `{method}`",
            why=str(error),
            remedy=f"Install {module.partition('.')[0]} beside this package, or use `{Method.SEEDED}`",
        ) from error
