"""A lock of what a repository's tests need, in agreement with the lock it stands beside."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from formulacode_dagster.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.specs.wheels import has_wheels

from .availability import Availability, Effort, Era
from .lock import read_lock
from .locking import Locked
from .pylock import requirements_of
from .resolution import Unsolvable
from .resolver import Resolver


@dataclass(frozen=True)
class LockedTests:
    """What was pinned for the tests, and what had to give way."""

    requirements: tuple[str, ...] = ()
    lock: str = ""
    notes: tuple[str, ...] = ()


def lock_tests(resolver: Resolver, wanted: Collection[DeclaredRequirement], locked: Locked, *, era: Era) -> LockedTests:
    """Pin *wanted* beside *locked*, as of the same date and for the same interpreter; what that holds is left out.

    Where all of it has no common solution with the lock, the first of *wanted* alone, which is pytest, is pinned; no
    failure: that its tests cannot be run is known of a repository later. Raises what `Resolver.resolve` raises else.
    """
    pins = read_lock(locked.resolution.lock).versions
    bounds = tuple(f"{name}=={version}" for name, version in pins.items())
    notes: list[str] = []
    for asked in (tuple(wanted), tuple(wanted)[:1]) if wanted else ():
        available = Availability(resolver, era, locked.python, Effort.AS_OF_DATE)
        try:
            resolution = available.pin(asked, constraints=bounds)
        except Unsolvable as failure:
            names = ", ".join(item.text for item in asked)
            notes.append(f"{names} of the tests cannot be had beside the lock ({failure.why or failure.what})")
            continue
        if not has_wheels(resolution.pylock, locked.python):
            notes.append(f"{', '.join(item.text for item in asked)} of the tests are not all there as wheels")
            continue
        beside = requirements_of(resolution.pylock, without=pins.keys())
        return LockedTests(tuple(item.text for item in asked), beside, (*notes, *available.notes.values()))
    return LockedTests(notes=tuple(notes))
