"""Types of settings' values: parsing and validation of those written as one text."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum
from math import inf
from pathlib import Path
from typing import Annotated, get_args

from annotated_types import Ge, Gt
from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from formulacode_dagster.models.items import Stage


class EngineChoice(StrEnum):
    """Engine for images. Dagster's launchpad uses the names of members, so they are the values."""

    docker = "docker"
    process = "process"
    auto = "auto"


class AgentSetting(StrEnum):
    """Coding agent for failures without a repair rule; members named as Dagster's launchpad uses them."""

    none = "none"
    auto = "auto"
    claude = "claude"
    codex = "codex"
    gemini = "gemini"
    command = "command"


class RegistryMode(StrEnum):
    """How images share repositories of the registry; members named as Dagster's launchpad uses them."""

    single = "single"
    mirror = "mirror"


def parts_of(text: str | Sequence[str]) -> Sequence[str]:
    """Split a comma-separated text; a sequence stays as it is."""
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else text


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parts_of)]


def _budgets(parts: tuple[str, ...]) -> tuple[str, ...]:
    for part in parts:
        stage, separator, share = part.rpartition("=")
        if not 0 <= float(share) <= 1 or (separator and stage.strip() not in list(Stage)):
            raise ValueError(part)
    return parts


FailureBudget = Annotated[Names, AfterValidator(_budgets)]
"""A share from 0 to 1 for all stages, and `stage=share` for those that have one of their own."""


def _agent_limits(parts: tuple[str, ...]) -> tuple[str, ...]:
    for part in parts:
        name, _, amount = part.partition("=")
        scope, _, unit = name.strip().partition(".")
        if scope not in ("item", "repository", "month") or unit not in ("tokens", "dollars", "minutes"):
            raise ValueError(part)
        if not 0 <= float(amount) < inf:
            raise ValueError(part)
    return parts


AgentLimits = Annotated[Names, AfterValidator(_agent_limits)]
"""`item.tokens=…`, `repository.dollars=…`, `month.minutes=…`: total budgets of agents."""


def pool_limits(parts: Sequence[str]) -> dict[str, int]:
    """The limits in *parts*, by pool."""
    return {name.strip(): int(limit) for name, _, limit in (part.partition("=") for part in parts)}


def _pools(parts: tuple[str, ...]) -> tuple[str, ...]:
    for name, limit in pool_limits(parts).items():
        if name not in POOLS or not 1 <= limit <= MOST_IN_A_POOL:
            raise ValueError(name)
    return parts


POOLS = ("github", "llm", "build", "measure")
"""Pools of Dagster: outside systems, and work that disturbs others of its kind."""
MOST_IN_A_POOL = 1000
PoolLimits = Annotated[Names, AfterValidator(_pools)]
"""`pool=limit`: runs that may be in a pool at the same time."""


def is_secret(field: FieldInfo) -> bool:
    """Return True if the value must never be shown."""
    return field.annotation is SecretStr


def what_it_can_be(field: FieldInfo) -> str:
    """Describe the valid values of *field*, for an error message."""
    kind = next((argument for argument in get_args(field.annotation) if argument is not type(None)), field.annotation)
    if isinstance(kind, type) and issubclass(kind, Enum):
        *first, last = (str(member.value) for member in kind)
        return f"{', '.join(first)} or {last}"
    bounds = [f", {constraint.ge} or more" for constraint in field.metadata if isinstance(constraint, Ge)]
    bounds += [f" above {constraint.gt}" for constraint in field.metadata if isinstance(constraint, Gt)]
    if field.examples:
        return f"a text such as {field.examples[0]}"
    word = "a whole number" if kind is int else "a number" if kind is float else "a text"
    return word + "".join(bounds)
