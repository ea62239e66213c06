"""The table of rules, as `rules.toml` has it."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from packaging.specifiers import SpecifierSet
from pydantic import Field, field_validator, model_validator

from formulacode_dagster.building.declarations.providers import DependencyKind
from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.recipe import Fix


class Phase(StrEnum):
    """When a loss shows: in the build of a tier, or before the built image runs."""

    BASE = "base"
    ENV = "env"
    TASK = "task"
    RUN = "run"


_PHASES = {
    "base": Phase.BASE,
    "env": Phase.ENV,
    "task": Phase.TASK,
    "imports": Phase.RUN,
    "benchmarks": Phase.RUN,
    "one_benchmark_runs": Phase.RUN,
    "tests_collect": Phase.RUN,
}


def phase_of(stage: str) -> Phase | None:
    """Return the phase of *stage*, a tier or a verification; None if no other build would help."""
    return _PHASES.get(stage)


class RepairRule(Frozen):
    """One line of the table: a pattern, its phase, and the proposal."""

    name: str
    why: str = Field(description="the cause when it matches")
    at: tuple[Phase, ...]
    patterns: tuple[str, ...] = Field(min_length=1, description="regular expressions, each looked for in every line")
    unless: tuple[str, ...] = Field(default=(), description="pattern in the same log that rules out this cause")
    lookup: DependencyKind | None = Field(default=None, description="table in which the group `name` is looked up")
    fixes: tuple[Fix, ...] = Field(default=(), description="the first that is new is proposed")
    python: str = Field(default="", description="interpreters it is for")
    locked: str = Field(default="", description="requirements of the lock, with versions")
    needs_submodules: bool = Field(default=False, description="only where the commit has submodules not yet laid in")
    at_most: int = Field(default=0, description="times in one build; 0: as long as there is something new to propose")

    @field_validator("patterns", "unless")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            re.compile(pattern)
        return patterns

    @model_validator(mode="after")
    def _proposes_one_way(self) -> RepairRule:
        if (self.lookup is None) == (not self.fixes):
            raise ValueError(f"{self.name} needs either `lookup` or `fixes`")
        if self.locked:
            parse_requirement(self.locked)
        SpecifierSet(self.python)
        return self


@cache
def rules() -> tuple[RepairRule, ...]:
    """The table, the more telling rules first."""
    data = tomllib.loads(files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))
    return tuple(RepairRule.model_validate(_named(entry)) for entry in data["rule"])


def _named(entry: dict[str, Any]) -> dict[str, Any]:
    fixes = [{"rule": entry["name"], "evidence": "", **fix} for fix in entry.get("fixes", ())]
    return {**entry, "fixes": fixes}
