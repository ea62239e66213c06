"""How a gate says what it found."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.image import Verification

SHOWN = 5


def result_of(name: str, problems: Sequence[str], otherwise: str) -> Verification:
    """The gate *name* holds when there are no *problems*; *otherwise* is what it then says."""
    if not problems:
        return Verification(name=name, ok=True, detail=otherwise)
    return Verification(name=name, ok=False, detail=listed(problems))


def listed(words: Sequence[str], *, between: str = "; ") -> str:
    """The first few of *words*, and how many more there are."""
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return between.join(words[:SHOWN]) + more
