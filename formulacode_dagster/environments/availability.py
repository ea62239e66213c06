"""Which files of the index a lock may take: wheels of the date, and beyond them only what is recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen

from .declaration import Declaration, requirement_name
from .interpreter import RELEASED
from .question import Resolution, Unsolvable
from .resolver import Resolver
from .uv_compile import BUILD_FLOOR

PATIENCE = timedelta(days=400)
"""How long after the merge, or after the interpreter's release, a first file still counts as one of the era."""

_MOST_ROUNDS = 30
_MOST_RUNGS = 3


class Effort(IntEnum):
    """How far a lock may depart from the wheels of the date."""

    WHEELS = 0
    """Source distributions only of what no interpreter has a wheel of, or only a pure one that came later."""
    LATER_FILES = 1
    """What has nothing for the interpreter at the date takes the first that has."""
    ALL_SOURCES = 2
    """Any project may be a source distribution."""


class Era(Frozen):
    """The dates that bound every lock of one plan, and its interpreters."""

    exclude_newer: datetime
    settled_at: datetime | None = None
    pythons: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    own: str = Field(default="", description="project that is built from the checkout")


class Availability:
    """Pins requirements for one interpreter, and keeps what it had to allow for that in `notes`."""

    def __init__(
        self, resolver: Resolver, era: Era, python: str, effort: Effort, *, floors: Mapping[str, datetime] | None = None
    ) -> None:
        """*floors* are projects that may be newer than the era from the start, and how new."""
        later = {name: floor for name, floor in (floors or {}).items() if floor > era.exclude_newer}
        self.notes: dict[str, str] = {
            name: f"{name} may be as new as {floor.date()}: it carries data alone" for name, floor in later.items()
        }
        self.effort = effort
        self._resolver, self._era, self._python = resolver, era, python
        self._settled_at = era.settled_at
        self._floors: dict[str, datetime] = later
        self._sources: set[str] = set()
        released = datetime.combine(RELEASED[python], datetime.min.time(), UTC)
        self._until = max(era.exclude_newer, released) + PATIENCE

    @property
    def later(self) -> dict[str, datetime]:
        """The projects that may be newer than the era, and until when."""
        own = {"setuptools": BUILD_FLOOR} if self._era.exclude_newer < BUILD_FLOOR else {}
        return own | self._floors

    def pin(
        self,
        declared: Iterable[Declaration],
        conda: Iterable[Declaration] = (),
        *,
        constraints: Iterable[str] = (),
        loosenable: Collection[str] = (),
    ) -> Resolution:
        """Resolve what is *declared* in pip's names, and *conda*, whose names may be other projects' on the index.

        What is declared, and there in later files alone, takes the first of these. Projects of *loosenable* get no
        help, since the caller rather gives up their version. Raises what `Resolver.resolve` raises.
        """
        known = tuple(declared)
        wanted, trusted = (*known, *conda), {item.text for item in known}
        self._settled_at = self._era.settled_at
        for _ in range(_MOST_ROUNDS):
            try:
                found = self._resolver.resolve(
                    (item.text for item in wanted),
                    python=self._python,
                    exclude_newer=self._era.exclude_newer,
                    settled_at=self._settled_at,
                    constraints=(*self._era.constraints, *constraints),
                    floors=self._floors,
                    sources=self._sources,
                    build_sources=self.effort is Effort.ALL_SOURCES,
                    own=self._era.own,
                )
            except Unsolvable as failure:
                texts = {requirement_name(item.text): item.text for item in reversed(wanted)}
                replaced = [name for name in failure.unbuildable if self._replace_source(name)]
                helped = [n for n in failure.lacking if n not in loosenable and self._help(n, texts.get(n, n))]
                waited = [n for n in failure.late if self._wait(n, texts.get(n, n))]
                if not (replaced or helped or waited):
                    if self._settled_at is None:
                        raise
                    self._settled_at = None
                continue
            gone = [item.requirement for item in found.absent if item.came_later]
            if not [text for text in gone if text in trusted and self._allow_later(requirement_name(text), text)]:
                return found
        raise Unsolvable(f"no end of what Python {self._python} lacks", why=", ".join(self.notes))

    def _help(self, name: str, text: str) -> bool:
        """Allow another file of *name*; False when there is none to allow with this effort."""
        if self.effort is Effort.ALL_SOURCES or name in self._floors or name in self._sources:
            return False
        wheel = self._resolver.first_wheel(text, python=self._python, until=self._until)
        if wheel is not None and self._came_since(wheel[0]):
            return self._admit(name, wheel[0])
        if wheel is None or wheel[0] <= self._era.exclude_newer:
            return (self.effort > Effort.WHEELS or self._is_never_a_wheel(text)) and self._read(name)
        if wheel[1]:
            return self._read(name)
        return self.effort > Effort.WHEELS and self._allow_later(name, text)

    def _is_never_a_wheel(self, text: str) -> bool:
        wheels = (
            self._resolver.first_wheel(text, python=rung, until=self._until) for rung in self._era.pythons[:_MOST_RUNGS]
        )
        return all(wheel is None for wheel in wheels)

    def _read(self, name: str) -> bool:
        self._sources.add(name)
        self.notes[name] = f"{name} is taken as a source distribution: Python {self._python} has no wheel of it"
        return True

    def _wait(self, name: str, text: str) -> bool:
        """Let *name* be as new as its first wheel, later than the merge only with more effort."""
        wheel = self._resolver.first_wheel(text, python=self._python, until=self._until)
        if wheel is not None and self._came_since(wheel[0]) and name not in self._floors:
            return self._admit(name, wheel[0])
        return self.effort > Effort.WHEELS and self._allow_later(name, text)

    def _came_since(self, uploaded: datetime) -> bool:
        return self._settled_at is not None and self._settled_at < uploaded <= self._era.exclude_newer

    def _admit(self, name: str, uploaded: datetime) -> bool:
        self._floors[name] = uploaded + timedelta(seconds=1)
        return True

    def _allow_later(self, name: str, text: str) -> bool:
        """Let *name* be as new as its first wheel; False when that is too far off, or is allowed already."""
        wheel = self._resolver.first_wheel(text, python=self._python, until=self._until)
        if wheel is None or wheel[0] <= self._era.exclude_newer or name in self._floors:
            return False
        self._admit(name, wheel[0])
        day = self._era.exclude_newer.astimezone(UTC).date()
        self.notes[name] = (
            f"{name} may be as new as {wheel[0].date()}: on {day} the index has nothing of it for Python {self._python}"
        )
        return True

    def _replace_source(self, name: str) -> bool:
        """Take a later wheel of *name*, whose source distribution does not build; False when there is none."""
        if name not in self._sources or self.effort is Effort.WHEELS or not self._allow_later(name, name):
            return False
        self._sources.discard(name)
        return True
