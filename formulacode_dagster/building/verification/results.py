"""How a verification reports its findings."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.base import listed
from formulacode_dagster.models.image import Verification


def result_of(name: str, problems: Sequence[str], otherwise: str) -> Verification:
    """The verification *name* passes if there are no *problems*; *otherwise* is its message then."""
    if not problems:
        return Verification(name=name, ok=True, detail=otherwise)
    return Verification(name=name, ok=False, detail=listed(problems, between="; "))
