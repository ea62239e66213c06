"""A lock of what a repository's tests need, in agreement with the lock it stands beside."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.specs.wheels import has_wheels

from .availability import Availability, Effort, Era
from .lock import read_lock
from .locking import Locked
from .pylock import requirements_of
from .resolution import Resolution, Unsolvable
from .resolver import Resolver

MOST_NAMED = 8


@dataclass(frozen=True)
class LockedTests:
    """What was pinned for the tests, and what had to give way."""

    requirements: tuple[str, ...] = ()
    lock: str = ""
    notes: tuple[str, ...] = ()


def lock_tests(resolver: Resolver, wanted: Collection[DeclaredRequirement], locked: Locked, *, era: Era) -> LockedTests:
    """Pin *wanted* beside *locked*, as of the same date and for the same interpreter; what that holds is left out.

    Where all of it has no common solution with the lock, or none of wheels, as much is pinned as can be had together,
    the first first, which is pytest: what tests lack then, they lack before and after a change. No failure: that its
    tests cannot be run is known of a repository later. Raises what `Resolver.resolve` raises else.
    """
    pins = read_lock(locked.resolution.lock).versions
    bounds = tuple(f"{name}=={version}" for name, version in pins.items())
    available = Availability(resolver, era, locked.python, Effort.AS_OF_DATE)

    def pinned(asked: Sequence[DeclaredRequirement]) -> Resolution | str:
        names = ", ".join(item.text for item in asked[-MOST_NAMED:])
        try:
            resolution = available.pin(tuple(asked), constraints=bounds)
        except Unsolvable as failure:
            return f"{names} of the tests cannot be had beside the lock ({failure.why or failure.what})"
        if not has_wheels(resolution.pylock, locked.python):
            return f"{names} of the tests are not all there as wheels"
        return resolution

    chosen, notes = tuple(wanted), list[str]()
    best = pinned(chosen) if chosen else ""
    if isinstance(best, str):
        notes += [best] if best else []
        chosen, best = (), ""
        for item in wanted if len(wanted) > 1 else ():
            tried = pinned((*chosen, item))
            if isinstance(tried, str):
                notes.append(f"{item.text} is left out")
            else:
                chosen, best = (*chosen, item), tried
    if isinstance(best, str):
        return LockedTests(notes=tuple(notes))
    beside = requirements_of(best.pylock, without=pins.keys())
    return LockedTests(tuple(item.text for item in chosen), beside, (*notes, *available.notes.values()))
