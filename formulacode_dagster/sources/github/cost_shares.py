"""Divide the cost of a request for several repositories, so that the shares add up to the whole."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.items import Cost


def split_cost(cost: Cost, weights: Sequence[int]) -> list[Cost]:
    """*cost* in shares proportional to *weights*, equal ones when all are 0; none for no weights.

    Whole numbers are divided by largest remainder, so nothing is lost to rounding.
    """
    if not weights:
        return []
    weights = weights if any(weights) else [1] * len(weights)
    parts: dict[str, list[int] | list[float]] = {}
    for name, value in cost.model_dump().items():
        parts[name] = _whole(value, weights) if isinstance(value, int) else _fractions(value, weights)
    return [Cost.model_validate({name: values[at] for name, values in parts.items()}) for at in range(len(weights))]


def _whole(value: int, weights: Sequence[int]) -> list[int]:
    total = sum(weights)
    parts = [value * weight // total for weight in weights]
    remainders = sorted(range(len(weights)), key=lambda at: (-(value * weights[at] % total), at))
    for at in remainders[: value - sum(parts)]:
        parts[at] += 1
    return parts


def _fractions(value: float, weights: Sequence[int]) -> list[float]:
    total = sum(weights)
    return [value * weight / total for weight in weights]
