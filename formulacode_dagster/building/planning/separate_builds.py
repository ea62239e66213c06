"""Build requirements that contradict the runtime's, locked for a separate environment, as PEP 517 isolates them."""

from __future__ import annotations

from collections.abc import Collection

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.requirements import Requirements

from . import abi
from .availability import Availability
from .lock import read_lock
from .resolution import Resolution, Unsolvable

ALWAYS = DeclaredRequirement(text="setuptools", source="every asv environment contains it")


def lock_separately(
    available: Availability, parts: Requirements, *, loosenable: Collection[str] = ()
) -> tuple[Resolution, Resolution] | None:
    """Return locks for running and for building; None if either has no solution, or if the result of one NumPy would
    not run with the other. *loosenable* is as in `Availability.pin`.
    """
    if not parts.build:
        return None
    try:
        running = available.pin((*parts.runtime, ALWAYS), parts.matrix, loosenable=loosenable)
        numpy = read_lock(running.lock).versions.get("numpy")
        try:
            return running, available.pin(parts.build, constraints=abi.bounds(numpy) if numpy else ())
        except Unsolvable:
            building = available.pin(parts.build)
    except Unsolvable:
        return None
    compiled = read_lock(building.lock).versions.get("numpy")
    return (running, building) if not (numpy and compiled) or abi.runs_with(compiled, numpy) else None
