"""The interpreters a commit may run on, best first, and the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field

from formulacode_dagster.building.declarations.metadata.project import Sourced
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

RELEASED: dict[str, date] = {
    "3.7": date(2018, 6, 27),
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
"""The interpreters that can be measured on, and the days of their first final releases, from PEPs 537, 569, 596, 619,
664, 693, 719 and 745."""

_MICRO_VERSIONS = 30
_MOST_LATER = 2
"""Number of interpreters released after the merge that are tried: later ones read little code of that era."""


class DeclaredPythons(Frozen):
    """Declarations in the three places. None means that a place declares nothing."""

    requires_python: Sourced[str] | None = None
    asv: Sourced[tuple[str, ...]] | None = None
    classifiers: Sourced[tuple[str, ...]] | None = None

    def allow(self, version: str) -> bool:
        """True if `requires-python` allows it."""
        return self.requires_python is None or allows(self.requires_python.value, version)

    def __str__(self) -> str:
        requires, asv, classifiers = self.requires_python, self.asv, self.classifiers
        parts = [
            f"requires-python {requires.value!r} ({requires.source})" if requires else "",
            f"asv pythons {', '.join(asv.value)} ({asv.source})" if asv else "",
            f"classifiers {', '.join(classifiers.value)} ({classifiers.source})" if classifiers else "",
        ]
        return "; ".join(filter(None, parts)) or "nothing declared"


class RankedInterpreters(Frozen):
    """The candidates, best first."""

    reasons: dict[str, str] = Field(description="candidate → the declarations that allow it")
    unavailable: tuple[str, ...] = Field(default=(), description="better ones that the engine cannot provide")
    declared: str

    @property
    def pythons(self) -> tuple[str, ...]:
        """The candidates' versions."""
        return tuple(self.reasons)

    def reason_for(self, python: str, *, stepped_down: Iterable[str] = ()) -> str:
        """The reason for *python*; *stepped_down* gives the objections to better ones."""
        ranking = [*self.unavailable, *self.pythons]
        better = [version for version in ranking[: ranking.index(python)] if version in self.unavailable]
        missing = [f"the engine cannot provide {', '.join(better)}"] if better else []
        return "; ".join([f"{python}: {self.reasons[python]}", *missing, *stepped_down, f"declared: {self.declared}"])


def rank_interpreters(
    declared: DeclaredPythons, *, at: datetime, available: frozenset[str] | None
) -> RankedInterpreters:
    """The interpreters that the declarations allow, known at the instant *at*, that the engine can provide.

    Rungs, each newest first: allowed by requires-python and named by asv; allowed by it and named by the classifiers;
    allowed by it. No installer takes a package on an interpreter that its requires-python forbids. If none of the named
    can be provided, those newer than all of them come in between, oldest first: code for 3.5 fits best on the oldest
    available one. If no interpreter of the time can be provided, the first later one. *available* None means any.
    Raises ItemFailure (`interpreter`).
    """
    day = at.astimezone(UTC).date()
    known = [version for version, released in RELEASED.items() if released <= day]
    provided = [version for version in RELEASED if available is None or version in available]
    ranked: dict[str, str] = {}
    for reason, versions in _rungs(declared, known, provided):
        for version in versions:
            ranked.setdefault(version, reason)
    usable = [version for version in ranked if version in provided]
    if not usable:
        later = [v for v in provided if v not in known and declared.allow(v)]
        usable = later[:_MOST_LATER]
        nothing = f"nothing that the declarations allow and that was out on {day} can be provided"
        ranked |= {version: f"{nothing}; nearest later one, of {RELEASED[version]}" for version in usable}
    if not usable:
        raise ItemFailure(
            FailureKind.INTERPRETER,
            f"no interpreter fits: {declared}",
            why=f"known on {day}: {', '.join(known) or 'none'}; the engine has: {', '.join(provided) or 'none'}",
            remedy="Use an engine that provides one of the declared versions",
        )
    return RankedInterpreters(
        reasons={version: ranked[version] for version in usable},
        unavailable=tuple(list(ranked)[: list(ranked).index(usable[0])]),
        declared=str(declared),
    )


def _rungs(declared: DeclaredPythons, versions: list[str], provided: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Reasons and the versions of *versions* that each ranks, best first."""
    newest_first = versions[::-1]
    restriction = declared.requires_python.value if declared.requires_python else ""
    requires = f"requires-python {restriction}"
    allowed = [version for version in newest_first if declared.allow(version)]
    asv, classifiers = _minors(declared.asv), _minors(declared.classifiers)
    by_asv = [version for version in newest_first if _order(version) in asv]
    by_classifiers = [version for version in newest_first if _order(version) in classifiers]
    by, named = ("asv", asv) if asv else ("the classifiers", classifiers)
    above = [version for version in reversed(allowed) if named and _order(version) > max(named)]
    names = ", ".join(f"{major}.{minor}" for major, minor in sorted(named))
    above_reason = f"{by} name{'s' if asv else ''} {names}: of the newer ones, the oldest first"

    if _specifiers(restriction) is None:
        yield "asv names it, no other restriction", by_asv
        yield "the classifiers name it, no other restriction", by_classifiers
        yield above_reason, above
        if not named:
            yield "no usable declaration: newest known at the merge", newest_first
        return
    yield f"{requires} allows it and asv names it", [version for version in by_asv if version in allowed]
    yield f"{requires} and the classifiers allow it", [version for version in by_classifiers if version in allowed]
    if not {*by_asv, *by_classifiers} & set(provided):
        yield above_reason, above
    yield f"{requires} allows it", allowed


def _order(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def _minors(names: Sourced[tuple[str, ...]] | None) -> frozenset[tuple[int, int]]:
    """(3, 11) of `3.11`, `python3.11`, `3.11.4`, `311`; names of other interpreters do not count."""
    pattern = r"(?:python|cpython-?|py)?([23])\.?(\d{1,2})(?:\.[\d*]+)?"
    matches = (re.fullmatch(pattern, name.strip().lower()) for name in (names.value if names else ()))
    return frozenset((int(match[1]), int(match[2])) for match in matches if match is not None)


def _specifiers(requires: str) -> SpecifierSet | None:
    """*requires* as it is read; None when it restricts nothing."""
    try:
        return SpecifierSet(requires) if requires.strip() else None
    except InvalidSpecifier:
        return None


def allows(requires: str, version: str) -> bool:
    """Return True if at least one micro release of *version* is inside *requires*."""
    specifiers = _specifiers(requires)
    return specifiers is None or any(specifiers.contains(f"{version}.{micro}") for micro in range(_MICRO_VERSIONS))
