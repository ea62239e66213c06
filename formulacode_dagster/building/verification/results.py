"""How a verification reports its findings."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.image import Verification

SHOWN = 5


def result_of(name: str, problems: Sequence[str], otherwise: str) -> Verification:
    """The verification *name* passes if there are no *problems*; *otherwise* is its message then."""
    if not problems:
        return Verification(name=name, ok=True, detail=otherwise)
    return Verification(name=name, ok=False, detail=listed(problems))


def listed(parts: Sequence[str], *, between: str = "; ") -> str:
    """Return the first few of *parts*, and the number of the rest."""
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return between.join(parts[:SHOWN]) + more
