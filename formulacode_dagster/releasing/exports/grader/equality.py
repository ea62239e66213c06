"""Equality of two calls' results, as `suites.questions.ReturnValue` defines it."""

from __future__ import annotations

import math
from typing import Any

TOLERANCE = {2: 1e-2, 4: 1e-3}
"""Tolerance of floats, by their bytes."""
FINEST = 1e-6


def same_values(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return True if the reported results of two calls are the same but for rounding."""
    numbers, others = before.get("numbers", ()), after.get("numbers", ())
    if before.get("form", "") != after.get("form", "") or len(numbers) != len(others):
        return False
    tolerance = TOLERANCE.get(min(before.get("itemsize", 8), after.get("itemsize", 8)), FINEST)
    largest = max(map(abs, (*numbers, *others)), default=0.0)
    sizes, totals = ([float(told.get(name, 0.0)) for told in (before, after)] for name in ("size", "total"))
    return abs(totals[0] - totals[1]) <= tolerance * max(sizes) and all(
        math.isclose(number, other, rel_tol=tolerance, abs_tol=tolerance / 1000 * largest)
        for number, other in zip(numbers, others)
    )
