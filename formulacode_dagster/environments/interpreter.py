"""Which interpreters a commit may run on, best first, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure

RELEASED: dict[str, date] = {
    "3.6": date(2016, 12, 23),
    "3.7": date(2018, 6, 27),
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
"""Days of the first final CPython releases, from PEPs 494, 537, 569, 596, 619, 664, 693, 719 and 745."""

_MICRO_VERSIONS = 30


class Declared(Frozen):
    """What the three places say. Empty means that a place says nothing."""

    requires_python: str = ""
    requires_python_source: str = ""
    asv_pythons: tuple[str, ...] = ()
    asv_source: str = ""
    classifiers: tuple[str, ...] = ()
    classifiers_source: str = ""

    def __str__(self) -> str:
        parts = [
            f"requires-python {self.requires_python!r} ({self.requires_python_source})" if self.requires_python else "",
            f"asv pythons {', '.join(self.asv_pythons)} ({self.asv_source})" if self.asv_pythons else "",
            f"classifiers {', '.join(self.classifiers)} ({self.classifiers_source})" if self.classifiers else "",
        ]
        return "; ".join(filter(None, parts)) or "nothing declared"


class Candidate(Frozen):
    """One interpreter, and the declarations that allow it."""

    python: str
    reason: str


class Ladder(Frozen):
    """The candidates, best first."""

    candidates: tuple[Candidate, ...]
    unavailable: tuple[str, ...] = Field(default=(), description="better ones that the engine cannot provide")
    declared: str

    @property
    def pythons(self) -> tuple[str, ...]:
        """The candidates' versions."""
        return tuple(candidate.python for candidate in self.candidates)

    def reason_for(self, python: str, *, stepped_down: Iterable[str] = ()) -> str:
        """Why *python* is used; *stepped_down* says what spoke against the better ones."""
        reason = next(candidate.reason for candidate in self.candidates if candidate.python == python)
        ranking = [*self.unavailable, *self.pythons]
        better = [version for version in ranking[: ranking.index(python)] if version in self.unavailable]
        missing = [f"the engine cannot provide {', '.join(better)}"] if better else []
        return "; ".join([f"{python}: {reason}", *missing, *stepped_down, f"declared: {self.declared}"])


def climb(declared: Declared, *, at: datetime, available: frozenset[str] | None) -> Ladder:
    """The interpreters that the declarations allow, known at the instant *at*, that the engine can provide.

    Rungs, each newest first: allowed by requires-python and named by asv (or by the classifiers where asv names none);
    named by asv alone, whose word weighs more where the two disagree; allowed by requires-python and named by the
    classifiers; allowed by requires-python. *available* None means any. Raises ItemFailure (`interpreter`).
    """
    day = at.astimezone(UTC).date()
    known = [version for version, released in RELEASED.items() if released <= day]
    allowed = _allowed(declared.requires_python, known)
    by_asv = [version for version in known if version in {_short(name) for name in declared.asv_pythons}]
    by_classifiers = [version for version in known if version in declared.classifiers]
    requires = f"requires-python {declared.requires_python}"

    rungs: list[tuple[str, list[str]]] = []
    if allowed is None:
        rungs.append(("asv names it, nothing else restricts it", by_asv))
        rungs.append(("the classifiers name it, nothing else restricts it", by_classifiers))
        if not by_asv and not by_classifiers:
            rungs.append(("nothing usable is declared: newest known at the merge", known))
    else:
        rungs.append((f"{requires} allows it and asv names it", [item for item in by_asv if item in allowed]))
        rungs.append((f"asv names it, against {requires}", by_asv if not set(by_asv) & set(allowed) else []))
        rungs.append((f"{requires} and the classifiers allow it", [v for v in by_classifiers if v in allowed]))
        rungs.append((f"{requires} allows it", allowed))
    ranked: dict[str, str] = {}
    for reason, versions in rungs:
        for version in reversed(versions):
            ranked.setdefault(version, reason)

    usable = [version for version in ranked if available is None or version in available]
    if not usable:
        has = "any" if available is None else ", ".join(sorted(available, key=_order)) or "none"
        raise ItemFailure(
            "interpreter",
            f"no interpreter fits: {declared}",
            why=f"known on {day}: {', '.join(known) or 'none'}; the engine has: {has}",
            remedy="Use an engine that provides one of the declared versions",
        )
    return Ladder(
        candidates=tuple(Candidate(python=version, reason=ranked[version]) for version in usable),
        unavailable=tuple(version for version in list(ranked)[: list(ranked).index(usable[0])]),
        declared=str(declared),
    )


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _short(name: str) -> str:
    """`3.11` of `3.11`, `python3.11`, `3.11.4`, `311`; the name itself when it is no CPython version."""
    match = re.fullmatch(r"(?:python|cpython-?|py)?(3)\.?(\d{1,2})(?:\.[\d*]+)?", name.strip().lower())
    return f"{match[1]}.{match[2]}" if match else name


def _allowed(requires: str, known: list[str]) -> list[str] | None:
    """Versions of *known* with at least one micro release inside *requires*; None when it restricts nothing."""
    if not requires.strip():
        return None
    try:
        specifiers = SpecifierSet(requires)
    except InvalidSpecifier:
        return None
    micros = range(_MICRO_VERSIONS)
    return [version for version in known if any(specifiers.contains(f"{version}.{micro}") for micro in micros)]
