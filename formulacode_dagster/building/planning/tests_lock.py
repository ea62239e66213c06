"""A lock of the tests' requirements, consistent with the main lock."""

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
    """The distributions pinned for the tests, and the requirements given up."""

    requirements: tuple[str, ...] = ()
    lock: str = ""
    notes: tuple[str, ...] = ()


def lock_tests(resolver: Resolver, wanted: Collection[DeclaredRequirement], locked: Locked, *, era: Era) -> LockedTests:
    """Pin *wanted* in addition to *locked*, for the same date and interpreter; packages in the lock are left out.

    If they have no common solution with the lock, or none of wheels, as many as fit together are pinned in order,
    pytest first: tests that lack something lack it before and after a change. This is no failure: a later stage records
    that a repository's tests cannot run. Otherwise raises as `Resolver.resolve`.
    """
    pins = read_lock(locked.resolution.lock).versions
    bounds = tuple(f"{name}=={version}" for name, version in pins.items())
    available = Availability(resolver, era, locked.python, Effort.AS_OF_DATE, floors=locked.later)

    def pinned(asked: Sequence[DeclaredRequirement]) -> Resolution | str:
        names = ", ".join(item.text for item in asked[-MOST_NAMED:])
        try:
            resolution = available.pin(tuple(asked), constraints=bounds)
        except Unsolvable as failure:
            return f"{names} of the tests does not fit the lock ({failure.why or failure.what})"
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
    added = requirements_of(best.pylock, without=pins.keys())
    more = (note for name, note in available.notes.items() if name not in locked.later)
    return LockedTests(tuple(item.text for item in chosen), added, (*notes, *more))
