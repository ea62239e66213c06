"""Requests of repair rules to the lock and the interpreter. Their requests to the build belong to `images`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement, validate
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix


def source_of(fix: Fix) -> str:
    """The origin that a record names for the requests of *fix*."""
    return f"repair rule {fix.rule}"


def add_requirements(wanted: Requirements, fixes: Sequence[Fix]) -> Requirements:
    """Return *wanted* and the requirements of *fixes*, for running and building; invalid texts are dropped by name."""
    asked = validate(
        DeclaredRequirement(text=text, source=source_of(fix)) for fix in fixes for text in fix.requirements
    )
    return wanted.model_copy(
        update={
            "runtime": (*wanted.runtime, *asked.accepted),
            "build": (*wanted.build, *asked.accepted),
            "dropped": (*wanted.dropped, *asked.dropped),
        }
    )


def constraints_of(fixes: Sequence[Fix]) -> tuple[str, ...]:
    """The bounds that *fixes* set, sorted. Raises ItemFailure (`lock`) for one that is no requirement."""
    declared = validate(
        DeclaredRequirement(text=text, source=source_of(fix)) for fix in fixes for text in fix.constraints
    )
    if declared.dropped:
        wrong = declared.dropped[0]
        raise ItemFailure(
            FailureKind.LOCK,
            f"{wrong.source} sets the bound {wrong.requirement!r}",
            why=wrong.reason,
            remedy="Correct the rule",
        )
    return tuple(sorted(item.text for item in declared.accepted))


def step_below(wanted: Mapping[str, Requirements], python: str, fix: Fix) -> dict[str, Requirements]:
    """The rungs of *wanted* without *python*, on which *fix* says the build cannot succeed.

    Raises ItemFailure (`interpreter`) when none is left.
    """
    left = {rung: requirements for rung, requirements in wanted.items() if rung != python}
    if not left:
        raise ItemFailure(
            FailureKind.INTERPRETER,
            f"no interpreter below Python {python} is left",
            why=f"{source_of(fix)}: {fix.evidence}",
            remedy="Use an engine that provides more of the declared versions",
        )
    return left


def only_on(wanted: Mapping[str, Requirements], fix: Fix) -> dict[str, Requirements]:
    """Return the one rung of *wanted* that *fix* requests. Raises ItemFailure (`interpreter`) if there is none."""
    if fix.python not in wanted:
        raise ItemFailure(
            FailureKind.INTERPRETER,
            f"Python {fix.python} is none of {', '.join(wanted)}",
            why=f"{source_of(fix)}: {fix.evidence}",
            remedy="Ask for an interpreter that the repository declares and the engine provides",
        )
    return {fix.python: wanted[fix.python]}
