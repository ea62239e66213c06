"""Index files a lock may use: wheels of the date, and later ones only on record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from pydantic import Field

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement, requirement_name
from formulacode_dagster.models.base import Frozen

from .interpreter import RELEASED
from .pylock import read_pylock
from .resolution import Refusal, Resolution, ResolutionRequest, Unsolvable
from .resolver import Resolver
from .uv_compile import BUILD_FLOOR

PATIENCE = timedelta(days=400)
"""How long after the merge, or after the interpreter's release, a first file still counts as contemporary."""

_MOST_ROUNDS = 30
_MOST_RUNGS = 3


class Effort(IntEnum):
    """How far a lock may depart from the files of the date."""

    AS_OF_DATE = 0
    """Wheels; source distributions only of projects that no interpreter has a wheel of, or that have only a later pure
    one.
    """
    LATER_FILES = 1
    """A project without a file for the interpreter at the date takes the first later one, else its source distribution.
    """


class Era(Frozen):
    """The dates that bound every lock of one plan, and its interpreters."""

    exclude_newer: datetime
    settled_at: datetime | None = None
    pythons: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    own: str = Field(default="", description="project that is built from the checkout")


class Availability:
    """Pins requirements for one interpreter, and records in `notes` what it had to allow."""

    def __init__(
        self, resolver: Resolver, era: Era, python: str, effort: Effort, *, floors: Mapping[str, datetime] | None = None
    ) -> None:
        """*floors* are projects that may be newer than the era from the start, and how new."""
        later = {name: floor for name, floor in (floors or {}).items() if floor > era.exclude_newer}
        self.notes: dict[str, str] = {
            name: f"{name} may be as new as {floor.date()}: it contains only data" for name, floor in later.items()
        }
        self.effort = effort
        self._resolver, self._era, self._python = resolver, era, python
        self._settled_at = era.settled_at
        self._floors: dict[str, datetime] = later
        self._as_wheels: set[str] = set(later)
        self._sources: set[str] = set()
        self._reads_sources = False
        released = datetime.combine(RELEASED[python], datetime.min.time(), UTC)
        self._until = max(era.exclude_newer, released) + PATIENCE

    @property
    def later(self) -> dict[str, datetime]:
        """The projects that may be newer than the era, and until when."""
        own = {"setuptools": BUILD_FLOOR} if self._era.exclude_newer < BUILD_FLOOR else {}
        return own | self._floors

    def pin(
        self,
        declared: Iterable[DeclaredRequirement],
        conda: Iterable[DeclaredRequirement] = (),
        *,
        constraints: Iterable[str] = (),
        loosenable: Collection[str] = (),
    ) -> Resolution:
        """Resolve *declared* requirements in pip's names, and *conda* names, which may be other projects' on the index.

        A declared project with only later files takes the first of these. Projects of *loosenable* get no help, since
        the caller prefers to give up their version. Raises as `Resolver.resolve`.
        """
        requirements = tuple(declared)
        wanted, trusted = (*requirements, *conda), {item.text for item in requirements}
        texts = {requirement_name(item.text): item.text for item in reversed(wanted)}
        self._settled_at = self._era.settled_at
        for _ in range(_MOST_ROUNDS):
            try:
                request = ResolutionRequest(
                    requirements=tuple(item.text for item in wanted),
                    python=self._python,
                    exclude_newer=self._era.exclude_newer,
                    constraints=(*self._era.constraints, *constraints),
                    floors=dict(self._floors),
                    own=self._era.own,
                    reads_sources=self._reads_sources,
                    as_wheels=tuple(self._as_wheels) if self._reads_sources else (),
                )
                resolution = self._resolver.resolve(request, settled_at=self._settled_at)
            except Unsolvable as failure:
                refusal = failure.refusal
                lacking = [name for name in (*refusal.lacking, *refusal.unbuildable) if name not in loosenable]
                helped = [name for name in lacking if self._help(name, texts.get(name, name))]
                waited = [name for name in refusal.late if self._wait(name, texts.get(name, name))]
                if not helped and not waited:
                    if self._settled_at is None:
                        raise
                    self._settled_at = None
                continue
            gone = [item.requirement for item in resolution.absent if item.came_later]
            waited = [text for text in gone if text in trusted and self._allow_later(requirement_name(text), text)]
            if not waited and not self._prefer_wheels(resolution, texts, loosenable):
                return resolution
        raise Unsolvable(Refusal(what=f"no end of what Python {self._python} lacks", why=", ".join(self.notes)))

    def _prefer_wheels(self, resolution: Resolution, texts: Mapping[str, str], loosenable: Collection[str]) -> bool:
        """Return True if a source distribution in *resolution* has a wheel to replace it.

        Raises Unsolvable if that, or the source distribution, is beyond this effort.
        """
        versions = {project.name: project.version for project in read_pylock(resolution.pylock) if not project.wheels}
        sources = versions.keys()
        better = {name for name in sources - self._sources if not self._may_be_source(texts.get(name, name))}
        refused = [
            name for name in sorted(better) if name in loosenable or not self._replace(name, texts.get(name, name))
        ]
        if refused:
            names = ", ".join(refused)
            what = f"Python {self._python} has no wheel of {names}"
            raise Unsolvable(Refusal(what=what, why=names, lacking=tuple(refused)))
        self._sources.update(sources - better)
        for name in sorted(sources - better):
            self.notes[name] = (
                f"{name} is taken as a source distribution: {versions[name]} has no wheel for Python {self._python}"
            )
        return bool(better)

    def _may_be_source(self, text: str) -> bool:
        wheel = self._first_wheel(text)
        if wheel is not None:
            return wheel[1]
        return self.effort > Effort.AS_OF_DATE or self._is_never_a_wheel(text)

    def _help(self, name: str, text: str) -> bool:
        """Allow another file of *name*, which lacks one that can be used; False when this effort allows none."""
        wheel = self._first_wheel(text)
        if wheel is not None and not wheel[1] and (self._came_since(wheel[0]) or wheel[0] > self._era.exclude_newer):
            return self._wait(name, text)
        if not self._reads_sources:
            self._reads_sources = self._may_be_source(text) or self.effort > Effort.AS_OF_DATE
            return self._reads_sources
        if wheel is not None and not wheel[1] and name not in self._sources:
            if name not in self._as_wheels:
                self._as_wheels.add(name)
            else:
                self._as_wheels.remove(name)
                self._sources.add(name)
            return True
        return self.effort > Effort.AS_OF_DATE and self._allow_later(name, text)

    def _replace(self, name: str, text: str) -> bool:
        """Take a wheel of *name* in place of its source distribution; False when this effort allows none."""
        wheel = self._first_wheel(text)
        if wheel is None or self._came_since(wheel[0]) or wheel[0] > self._era.exclude_newer:
            return wheel is not None and self._wait(name, text)
        self._as_wheels.add(name)
        return True

    def _first_wheel(self, text: str) -> tuple[datetime, bool] | None:
        return self._resolver.first_wheel(text, python=self._python, until=self._until)

    def _is_never_a_wheel(self, text: str) -> bool:
        rungs = self._era.pythons[:_MOST_RUNGS]
        return all(self._resolver.first_wheel(text, python=rung, until=self._until) is None for rung in rungs)

    def _wait(self, name: str, text: str) -> bool:
        """Let *name* be as new as its first wheel, later than the merge only with more effort."""
        wheel = self._first_wheel(text)
        if wheel is not None and self._came_since(wheel[0]) and name not in self._floors:
            return self._admit(name, wheel[0])
        return self.effort > Effort.AS_OF_DATE and self._allow_later(name, text)

    def _came_since(self, uploaded: datetime) -> bool:
        return self._settled_at is not None and self._settled_at < uploaded <= self._era.exclude_newer

    def _allow_later(self, name: str, text: str) -> bool:
        """Let *name* be as new as its first wheel; False when that is too far off, or is allowed already."""
        wheel = self._first_wheel(text)
        if wheel is None or wheel[0] <= self._era.exclude_newer or name in self._floors:
            return False
        day = self._era.exclude_newer.astimezone(UTC).date()
        self.notes[name] = (
            f"{name} may be as new as {wheel[0].date()}: on {day} the index has nothing of it for Python {self._python}"
        )
        return self._admit(name, wheel[0])

    def _admit(self, name: str, uploaded: datetime) -> bool:
        self._floors[name] = uploaded + timedelta(seconds=1)
        self._as_wheels.add(name)
        return True
