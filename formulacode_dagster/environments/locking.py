"""From requirements and candidates to one interpreter and one lock, stepping down only with a record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from packaging.requirements import Requirement
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .declaration import Declaration, requirement_name
from .declared import Requirements
from .resolver import Resolution, Resolver, Unsolvable

MOST_INTERPRETERS = 4
"""How many candidates are tried before the item fails."""


class Locked(Frozen):
    """What was pinned, for which interpreter, and what had to give way."""

    python: str
    resolution: Resolution
    runtime: tuple[str, ...] = Field(description="requirements to run and to benchmark, as given")
    build: tuple[str, ...]
    dropped: tuple[DroppedRequirement, ...] = ()
    notes: tuple[str, ...] = ()
    stepped_down: tuple[str, ...] = Field(default=(), description="what spoke against better interpreters")


class _Variation(Frozen):
    """The requirements, possibly with something given up."""

    requirements: Requirements
    dropped: tuple[DroppedRequirement, ...] = ()
    notes: tuple[str, ...] = ()


def lock_best(
    resolver: Resolver, wanted: dict[str, Requirements], *, exclude_newer: datetime, most: int = MOST_INTERPRETERS
) -> Locked:
    """The lock for the first interpreter of *wanted* (best first → what it is to hold) that has one.

    For each, the declarations are tried whole, then without build pins that runtime requirements contradict, then with
    asv's matrix pins loosened. Wheels come first for all of them; source distributions are read only when nothing else
    is left. Raises Unsolvable with the words spoken against the first attempt, and what `Resolver.resolve` raises.
    """
    tried = list(wanted.items())[:most]
    first: Unsolvable | None = None
    against: dict[str, str] = {}
    for build_sources in (False, True):
        for position, (python, requirements) in enumerate(tried):
            for variation in _variations(requirements):
                try:
                    resolution = _resolve(resolver, variation, python, exclude_newer, build_sources)
                except Unsolvable as failure:
                    first = first or failure
                    against.setdefault(python, f"{python} has no solution ({failure.why or failure.what})")
                    if failure.needs_sources and not build_sources:
                        break
                    continue
                better = tuple(against[name] for name, _ in tried[:position] if name in against)
                return _locked(python, resolution, variation, better)
    assert first is not None  # noqa: S101 - a ladder has at least one rung
    raise first


def _resolve(
    resolver: Resolver, variation: _Variation, python: str, exclude_newer: datetime, build_sources: bool
) -> Resolution:
    parts = variation.requirements
    texts = [item.text for item in (*parts.runtime, *parts.matrix, *parts.build)]
    return resolver.resolve(texts, python=python, exclude_newer=exclude_newer, build_sources=build_sources)


def _variations(requirements: Requirements) -> Iterator[_Variation]:
    yield _Variation(requirements=requirements)
    names = requirements.runtime_names()
    needless = [item for item in requirements.build if _stands_in_for(item) & names]
    reason = "its pin contradicts what the package runs with, against which it is then built"
    dropped = tuple(item.dropped(reason) for item in needless)
    without = requirements.model_copy(update={"build": tuple(i for i in requirements.build if i not in needless)})
    if needless:
        yield _Variation(requirements=without, dropped=dropped)
    pinned = [item for item in requirements.matrix if Requirement(item.text).specifier]
    if pinned:
        loose = tuple(_loosened(item) if item in pinned else item for item in requirements.matrix)
        notes = tuple(f"{item.source}: {item.text} has no solution here, any version was allowed" for item in pinned)
        relaxed = without.model_copy(update={"matrix": loose})
        yield _Variation(requirements=relaxed, dropped=dropped, notes=notes)


def _stands_in_for(build: Declaration) -> frozenset[str]:
    name = requirement_name(build.text)
    return frozenset({"numpy"} if name == "oldest-supported-numpy" else {name})


def _loosened(item: Declaration) -> Declaration:
    return Declaration(text=Requirement(item.text).name, source=item.source)


def _locked(python: str, resolution: Resolution, variation: _Variation, better: tuple[str, ...]) -> Locked:
    parts = variation.requirements
    absent = {item.requirement: item.reason for item in resolution.absent}
    everything = (*parts.runtime, *parts.matrix, *parts.build)
    missing = tuple(item.dropped(absent[item.text]) for item in everything if item.text in absent)
    runtime = dict.fromkeys(item.text for item in (*parts.runtime, *parts.matrix) if item.text not in absent)
    return Locked(
        python=python,
        resolution=resolution,
        runtime=tuple(runtime),
        build=tuple(dict.fromkeys(item.text for item in parts.build if item.text not in absent)),
        dropped=(*variation.dropped, *missing),
        notes=(*variation.notes, *resolution.notes),
        stepped_down=better,
    )
