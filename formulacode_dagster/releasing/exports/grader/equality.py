"""Equality of the values that calls compute, and which of them say something.

The wider tolerances are those of `suites.questions.ReturnValue`; the closer ones are for values that agree within them
on all arms without the agent's code.
"""

from __future__ import annotations

import math
from typing import Any

TOLERANCE = {2: 1e-2, 4: 1e-3}
"""Tolerance of floats, by the bytes of the base's."""
FINEST = 1e-6
CLOSE_TOLERANCE = {2: 1e-2, 4: 1e-5}
CLOSEST = 1e-9
"""Above the rounding of sums in another order, and below that of single precision."""


def same_values(before: dict[str, Any], after: dict[str, Any], *, close: bool = False) -> bool:
    """Return True if *after* is *before* but for rounding, of which less is allowed with *close*."""
    numbers, others = before.get("numbers", ()), after.get("numbers", ())
    if before.get("form", "") != after.get("form", "") or len(numbers) != len(others):
        return False
    # never the other's precision, which may be chosen
    itemsize = before.get("itemsize", 8)
    tolerance = CLOSE_TOLERANCE.get(itemsize, CLOSEST) if close else TOLERANCE.get(itemsize, FINEST)
    largest = max(map(abs, numbers), default=0.0)
    totals = [float(told.get("total", 0.0)) for told in (before, after)]
    return abs(totals[0] - totals[1]) <= tolerance * float(before.get("size", 0.0)) and all(
        math.isclose(number, other, rel_tol=tolerance, abs_tol=tolerance / 1000 * largest)
        for number, other in zip(numbers, others)
    )


class ComparedValues:
    """Values of a call on the base, as the harness describes them, and which of them other calls have to match."""

    def __init__(self, base: list[dict[str, Any]], *others: list[dict[str, Any]]) -> None:
        """*others* are of the control and the author's code: where they differ from *base*, nothing is demanded."""
        self._demanded: dict[str, tuple[dict[str, Any], bool]] = {}
        theirs = [by_part(other) for other in others]
        for part, value in by_part(base).items():
            sides = [side.get(part, {}) for side in theirs]
            if not value.get("form") or value["type"] == "NoneType":
                continue
            if all(same_values(value, side, close=True) for side in sides):
                self._demanded[part] = value, True
            elif all(same_values(value, side) for side in sides):
                self._demanded[part] = value, False

    @property
    def is_proof(self) -> bool:
        """Whether any value says something of the call."""
        return bool(self._demanded)

    def differing(self, agent: list[dict[str, Any]]) -> list[str]:
        """Return the parts in which the values of *agent* are others."""
        try:
            theirs = by_part(agent)
            return [
                part
                for part, (value, close) in self._demanded.items()
                if not same_values(value, theirs.get(part, {}), close=close)
            ]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # the agent's code may have written them
            return ["what its process answered"]

    def of_other_types(self, agent: list[dict[str, Any]]) -> bool:
        """Return True if some value of *agent* is equal, but of another type, so that it may be computed later."""
        theirs = by_part(agent)
        return any(
            value.get("types") != theirs.get(part, {}).get("types") for part, (value, _) in self._demanded.items()
        )


def by_part(values: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return *values* by the name of each."""
    return {str(value["part"]): value for value in values}
