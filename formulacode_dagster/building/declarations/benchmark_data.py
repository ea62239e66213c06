"""Data that benchmarks read and a project of the package index carries: one table, by the module they import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from pydantic import Field

from formulacode_dagster.models.base import Frozen

from .declared_requirement import DeclaredRequirement, requirement_name, validate
from .optional import OptionalGroup
from .shipped_tables import shipped_table


class DataPackage(Frozen):
    """One entry of the table."""

    module: str = Field(description="module whose import, or that of a part of it, tells that the data is read")
    requirement: str
    reason: str
    since: date | None = Field(default=None, description="day of the first release of what carries data alone")


class DataChoice(Frozen):
    """Data packages that the lock must hold for the benchmarks."""

    requirements: tuple[DeclaredRequirement, ...] = ()
    floors: dict[str, datetime] = Field(
        default_factory=dict, description="project → how new it may be, the merge's date notwithstanding"
    )
    notes: tuple[str, ...] = ()


@cache
def _table() -> tuple[DataPackage, ...]:
    return tuple(DataPackage.model_validate(entry) for entry in shipped_table("benchmark_data")["data"])


def choose_data(imports: Mapping[str, str], have: Collection[str], among: Iterable[OptionalGroup]) -> DataChoice:
    """Return the data packages for the benchmarks' *imports* (module → its place), except the projects *have*.

    If one of *among* declares the package, the project's own spelling has precedence.
    """
    declared = {
        requirement_name(item.text): item for group in among for item in reversed(validate(group.items).accepted)
    }
    added: list[DeclaredRequirement] = []
    floors: dict[str, datetime] = {}
    notes: list[str] = []
    for entry in _table():
        place = next((p for name, p in imports.items() if f"{name}.".startswith(f"{entry.module}.")), "")
        if not place:
            continue
        name = requirement_name(entry.requirement)
        if entry.since is not None:
            floors[name] = datetime.combine(entry.since + timedelta(days=1), time.min, UTC)
        if name not in have:
            added.append(declared.get(name) or DeclaredRequirement(text=entry.requirement, source=place))
            notes.append(f"{entry.requirement} is taken: {place} imports {entry.module}, and {entry.reason}")
    return DataChoice(requirements=tuple(added), floors=floors, notes=tuple(notes))
