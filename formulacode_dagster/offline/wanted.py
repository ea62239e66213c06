"""Repositories that people asked for by name."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState

from .identity import derived_id


def with_wanted(month: Month, found: Sequence[Repository], wanted: Sequence[str]) -> tuple[Repository, ...]:
    """*found*, and a vanished one for each name in *wanted* that none of them has or had; by name."""
    known = {name.lower() for one in found for name in (one.full_name, *one.aliases)}
    missing = {name.lower(): name for name in wanted if name.lower() not in known}
    absent = [
        Repository(
            month=month.key,
            id=derived_id(name),
            node_id="",
            full_name=name,
            state=RepositoryState.VANISHED,
            stars=UNKNOWN_STARS,
            language=UNKNOWN_LANGUAGE,
            config_path="",
        )
        for name in missing.values()
    ]
    return tuple(sorted((*found, *absent), key=lambda one: one.full_name.lower()))
