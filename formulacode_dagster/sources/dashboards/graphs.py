"""One graph: a list of `[revision, value]`, or of `[revision, [value, …]]` for a benchmark with parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .faults import Fault, FaultKind, parse_json

MOST_COMBINATIONS = 1_000_000
"""Values of a point that are read; lists of ten parameters can ask for more than any memory."""


@dataclass(frozen=True)
class Graph:
    """Points of a graph, one column per combination of parameters; NaN means not measured, or failed."""

    revisions: NDArray[np.int64]
    values: NDArray[np.float64]


def parse_graph(path: str, content: bytes, combinations: int | None) -> tuple[Graph | None, list[Fault]]:
    """Return the graph in *content*, if there is one, and its fault.

    *combinations* is how many values a point has; None for a benchmark without parameters.
    """
    if combinations is not None and combinations > MOST_COMBINATIONS:
        return None, [Fault(path, FaultKind.TOO_LARGE, f"{combinations:,} combinations of parameters")]
    read = parse_json(path, content)
    if isinstance(read, Fault):
        return None, [read]
    try:
        graph = _graph(read, combinations)
    except (TypeError, ValueError, OverflowError) as error:
        return None, [Fault(path, FaultKind.MALFORMED, str(error).splitlines()[0])]
    steps = np.diff(graph.revisions)
    faults = []
    if len(steps) and steps.min() <= 0:
        duplicates = len(graph.revisions) - len(np.unique(graph.revisions))
        if duplicates:
            faults.append(Fault(path, FaultKind.DUPLICATE_REVISION, f"{duplicates} of {len(graph.revisions)} points"))
        if steps.min() < 0:
            faults.append(Fault(path, FaultKind.UNORDERED, f"{int((steps < 0).sum())} times"))
    return graph, faults


def _graph(read: Any, combinations: int | None) -> Graph:
    if not isinstance(read, list):
        raise TypeError(f"a {type(read).__name__} where a list of points was expected")
    if not read:
        return Graph(np.empty(0, np.int64), np.empty((0, combinations or 1)))
    # of points of unlike length this raises ValueError
    revisions, rows = zip(*read, strict=True)
    numbers = np.array(revisions)
    if numbers.dtype.kind != "i":
        raise TypeError("a revision that is not a whole number")
    if combinations is None:
        values = np.array(rows, np.float64)
        if values.ndim != 1:
            raise ValueError("several values a point for a benchmark without parameters")
        return Graph(numbers.astype(np.int64), values.reshape(-1, 1))
    # a benchmark that failed as a whole has no list
    missing = [None] * combinations
    values = np.array([missing if row is None else row for row in rows], np.float64)
    if values.ndim != 2 or values.shape[1] != combinations:
        told = values.shape[1] if values.ndim == 2 else 1
        raise ValueError(f"{told} values a point for {combinations} combinations of parameters")
    return Graph(numbers.astype(np.int64), values)
