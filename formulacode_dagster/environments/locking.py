"""From requirements and candidates to one interpreter and one lock, stepping down only with a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from packaging.requirements import Requirement
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .declaration import Declaration, requirement_name
from .declared import Requirements
from .question import Resolution, Unsolvable
from .resolver import Resolver

MOST_INTERPRETERS = 6
"""How many candidates are tried with wheels before the item fails."""

MOST_READING_SOURCES = 2
"""How many of them are tried again with source distributions, whose reading may take minutes."""


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
    resolver: Resolver,
    wanted: Mapping[str, Requirements],
    *,
    exclude_newer: datetime,
    constraints: Sequence[str] = (),
) -> Locked:
    """The lock within *constraints* for the first interpreter of *wanted* (best first → what it is to hold) with one.

    Where the declarations contradict each other, a build requirement that speaks of what the package runs with gives
    way first, then the version that asv's matrix pins. Wheels are tried for all interpreters before any source
    distribution is read. Raises Unsolvable with the resolver's words, and what `Resolver.resolve` raises.
    """
    tried = list(wanted.items())[:MOST_INTERPRETERS]
    failures: list[Unsolvable] = []
    against: dict[str, str] = {}
    for build_sources in (False, True):
        for position, (python, requirements) in enumerate(tried[: MOST_READING_SOURCES if build_sources else None]):
            try:
                resolution, variation = _solve(
                    resolver, requirements, python, exclude_newer, build_sources, constraints
                )
            except Unsolvable as failure:
                failures.append(failure)
                against.setdefault(python, f"{python} has no solution ({failure.why or failure.what})")
                continue
            better = tuple(against[name] for name, _ in tried[:position] if name in against)
            return _locked(python, resolution, variation, better)
    first = failures[0]
    words = dict.fromkeys(failure.log_tail for failure in (first, *failures[len(tried) : len(tried) + 1]))
    raise Unsolvable(
        f"no lock for Python {', '.join(python for python, _ in tried)}",
        why=first.why,
        log_tail="\n\n".join(filter(None, words)),
        blamed=first.blamed,
    )


def _solve(
    resolver: Resolver,
    requirements: Requirements,
    python: str,
    exclude_newer: datetime,
    build_sources: bool,
    constraints: Sequence[str],
) -> tuple[Resolution, _Variation]:
    variation = _Variation(requirements=requirements)
    while True:
        parts = variation.requirements
        texts = [item.text for item in (*parts.runtime, *parts.matrix, *parts.build)]
        try:
            found = resolver.resolve(
                texts,
                python=python,
                exclude_newer=exclude_newer,
                build_sources=build_sources,
                constraints=constraints,
            )
        except Unsolvable as failure:
            relaxed = None if failure.needs_sources else _relaxed(variation, failure.blamed)
            if relaxed is None:
                raise
            variation = relaxed
        else:
            return found, variation


def _relaxed(variation: _Variation, blamed: Iterable[str]) -> _Variation | None:
    """*variation* with what gives way next among the *blamed* requirements; None when nothing may."""
    parts = variation.requirements
    spoken = frozenset(map(requirement_name, blamed))
    running = parts.runtime_names()
    needless = [
        item for item in parts.build if _stands_in_for(item) in running and requirement_name(item.text) in spoken
    ]
    if needless:
        reason = "contradicts what the package runs with, against which it is then built"
        kept = tuple(item for item in parts.build if item not in needless)
        return _Variation(
            requirements=parts.model_copy(update={"build": kept}),
            dropped=(*variation.dropped, *(item.dropped(reason) for item in needless)),
            notes=variation.notes,
        )
    pinned = [i for i in parts.matrix if requirement_name(i.text) in spoken and Requirement(i.text).specifier]
    if pinned:
        notes = (f"{item.source}: {item.text} has no solution, any version was allowed" for item in pinned)
        loose = tuple(_loosened(item) if item in pinned else item for item in parts.matrix)
        return _Variation(
            requirements=parts.model_copy(update={"matrix": loose}),
            dropped=variation.dropped,
            notes=(*variation.notes, *notes),
        )
    return None


def _stands_in_for(build: Declaration) -> str:
    name = requirement_name(build.text)
    return "numpy" if name == "oldest-supported-numpy" else name


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
