"""From requirements and candidates to one interpreter and its locks, with a record of every step down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from packaging.version import Version
from pydantic import Field

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .availability import Availability, Effort, Era
from .lock import read_lock
from .relaxing import RelaxedRequirements, relaxed
from .resolution import Refusal, Resolution, Unsolvable
from .resolver import Resolver

MOST_INTERPRETERS = 6
"""Number of candidates tried with wheels of the date before the item fails."""

MOST_WITH_LATER_FILES = 2
"""Number of them tried again with later files and any source distribution, which may take minutes."""

ALWAYS = DeclaredRequirement(text="setuptools", source="every asv environment contains it")
_FIRST_TO_LOOK_BACK = Version("1.25")
_OLDEST_LOOKED_BACK_TO = Version("1.21")


class Locked(Frozen):
    """The pinned distributions, the interpreter, and the requirements given up."""

    python: str
    resolution: Resolution
    build_resolution: Resolution | None = Field(default=None, description="of a build environment of its own")
    runtime: tuple[str, ...] = Field(description="requirements to run and to benchmark, as given")
    build: tuple[str, ...]
    cut_off: datetime = Field(description="instant of the newest file in the locks, except those of `later`")
    later: dict[str, datetime] = Field(default_factory=dict, description="cut-offs of single projects")
    dropped: tuple[DroppedRequirement, ...] = ()
    notes: tuple[str, ...] = ()
    stepped_down: tuple[str, ...] = Field(default=(), description="objections to better interpreters")


def lock_best(resolver: Resolver, wanted: Mapping[str, Requirements], *, era: Era) -> Locked:
    """Return the locks of *era* for the first interpreter of *wanted* (best first → its requirements) that has them.

    Wheels of the date are tried for all interpreters before anything goes further (`availability.Effort`). If the
    declarations contradict each other, `relaxing` chooses what to give up. Raises Unsolvable with the resolver's
    message, and as `Resolver.resolve`.
    """
    tried = list(wanted.items())[:MOST_INTERPRETERS]
    failures: list[Unsolvable] = []
    against: dict[str, str] = {}
    for effort in Effort:
        for position, (python, requirements) in enumerate(tried[: MOST_WITH_LATER_FILES if effort else None]):
            available = Availability(resolver, era, python, effort, floors=requirements.floors)
            try:
                resolution, build_resolution, current = _solve(available, requirements)
            except Unsolvable as failure:
                failures.append(failure)
                against.setdefault(python, f"{python} has no solution ({failure.why or failure.what})")
                continue
            better = tuple(against[name] for name, _ in tried[:position] if name in against)
            return _locked(python, resolution, build_resolution, current, available, better)
    first = failures[0]
    words = dict.fromkeys(failure.log_tail for failure in (first, *failures[len(tried) : len(tried) + 1]))
    refusal = Refusal(
        what=f"no lock for Python {', '.join(python for python, _ in tried)}",
        why=first.why,
        log_tail="\n\n".join(filter(None, words)),
        blamed=first.refusal.blamed,
    )
    raise Unsolvable(refusal)


def _solve(
    available: Availability, requirements: Requirements
) -> tuple[Resolution, Resolution | None, RelaxedRequirements]:
    current = RelaxedRequirements(requirements=requirements)
    while True:
        parts, loosenable = current.requirements, current.loosenable(available.effort)
        try:
            shared = available.pin((*parts.runtime, *parts.build), parts.matrix, loosenable=loosenable)
        except Unsolvable as failure:
            spoken = set(failure.refusal.blamed).intersection(item.text for item in parts.build)
            if spoken and not failure.refusal.lacking:
                locked = lock_separately(available, parts, loosenable=loosenable)
                if locked is not None:
                    return *locked, current
            looser = relaxed(current, failure.refusal, available.effort)
            if looser is None:
                raise
            current = looser
        else:
            return shared, None, current


def _locked(
    python: str,
    resolution: Resolution,
    build_resolution: Resolution | None,
    current: RelaxedRequirements,
    available: Availability,
    better: tuple[str, ...],
) -> Locked:
    parts = current.requirements
    absent = {
        item.requirement: item.reason
        for item in (*resolution.absent, *(build_resolution.absent if build_resolution else ()))
    }
    everything = (*parts.runtime, *parts.matrix, *parts.build)
    missing = tuple(item.dropped(absent[item.text]) for item in everything if item.text in absent)
    runtime = dict.fromkeys(item.text for item in (*parts.runtime, *parts.matrix) if item.text not in absent)
    separate = (
        ("the build requirements contradict the runtime's: they are locked separately",) if build_resolution else ()
    )
    return Locked(
        python=python,
        resolution=resolution,
        build_resolution=build_resolution,
        runtime=tuple(runtime),
        build=tuple(dict.fromkeys(item.text for item in parts.build if item.text not in absent)),
        cut_off=max(part.cut_off for part in (resolution, build_resolution) if part is not None),
        later=available.later,
        dropped=(*current.dropped, *missing),
        notes=tuple(dict.fromkeys((*current.notes, *resolution.notes, *available.notes.values(), *separate))),
        stepped_down=better,
    )


def numpy_bounds(running: str) -> tuple[str, ...]:
    """Constraints under which a compiled extension certainly runs with NumPy *running*."""
    return (f"numpy<={running}", *(("numpy>=2",) if Version(running).major >= 2 else ()))


def runs_with(compiled: str, running: str) -> bool:
    """Return True if an extension compiled against NumPy *compiled* runs with *running*."""
    new, old = Version(compiled), Version(running)
    if new.major < old.major:
        return False
    return new <= old or (new >= _FIRST_TO_LOOK_BACK and old >= _OLDEST_LOOKED_BACK_TO)


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
            return running, available.pin(parts.build, constraints=numpy_bounds(numpy) if numpy else ())
        except Unsolvable:
            building = available.pin(parts.build)
    except Unsolvable:
        return None
    compiled = read_lock(building.lock).versions.get("numpy")
    return (running, building) if not (numpy and compiled) or runs_with(compiled, numpy) else None
