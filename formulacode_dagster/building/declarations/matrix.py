"""The environment chosen from an asv matrix, and its requirements."""

from __future__ import annotations

import itertools

from packaging.version import InvalidVersion, Version
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .asv_config import AsvConfig, MatrixRule, MatrixRules, Values
from .conda_names import meaning_of
from .declared_requirement import DeclaredRequirement

_MOST_COMBINATIONS = 4096
_CONDA_TOOLS = ("conda", "mamba", "rattler")
_SPECIFIER_STARTS = ("<", ">", "=", "!", "~")


Key = tuple[str, str]
"""Kind of a matrix entry (`req`, `env`, `env_nobuild`) and its name."""


class MatrixChoice(Frozen):
    """One environment of the matrix."""

    requirements: tuple[DeclaredRequirement, ...] = ()
    dropped: tuple[DroppedRequirement, ...] = ()
    system_packages: tuple[str, ...] = Field(default=(), description="Debian packages behind conda names")
    environment: dict[str, str] = Field(default_factory=dict, description="variables of build and benchmark runs")
    run_environment: dict[str, str] = Field(default_factory=dict, description="variables of benchmark runs only")
    notes: tuple[str, ...] = ()


def pythons_of(config: AsvConfig) -> tuple[str, ...]:
    """The interpreters asv makes environments for: those that `exclude` leaves, and those `include` adds.

    Empty when the configuration names none: asv then takes its own.
    """
    if not config.pythons:
        return ()
    rules = MatrixRules(config)
    left = (python for python in config.pythons if _of_matrix(config, python, rules) is not None)
    added = (rule.python for rule in config.include if rule.python is not None and rules.apply(rule))
    return tuple(dict.fromkeys((*left, *added)))


def choose(config: AsvConfig, python: str) -> MatrixChoice:
    """The best environment for *python*: any version before the newest named one, `exclude` rules observed.

    An `include` entry is used if the matrix has no environment for *python*, or one without requirements: one of the
    same interpreter first, else of the nearest.
    """
    rules = MatrixRules(config)
    entries = _of_matrix(config, python, rules)
    source, notes = f"{config.path}:matrix", []
    if entries is None:
        notes.append(f"every combination of {source} is excluded for Python {python}")
    included = _of_include(config, python, rules, nearest=entries is None)
    if included is not None and not any(kind == "req" for kind, _ in entries or ()):
        rule, entries = included
        source = f"{config.path}:include"
        notes.append(f"took the environment that {source} adds for Python {rule.python}")
    elif entries is None:
        notes.append("no environment was taken")
    return _read(config, entries or {}, source, notes)


def _of_matrix(config: AsvConfig, python: str, rules: MatrixRules) -> dict[Key, str | None] | None:
    """The best combination that is not excluded for *python*; None when all are."""
    entries = config.matrix.entries()
    for combination in itertools.islice(itertools.product(*map(_ranked, entries.values())), _MOST_COMBINATIONS):
        chosen = dict(zip(entries, combination, strict=True))
        if not rules.exclude(python, chosen):
            return chosen
    return None


def _of_include(
    config: AsvConfig, python: str, rules: MatrixRules, *, nearest: bool
) -> tuple[MatrixRule, dict[Key, str | None]] | None:
    """The added environment that leaves most versions open, for *python* or the interpreter nearest to it."""

    def distance(rule: MatrixRule) -> float:
        try:
            asked, named = Version(python), Version(rule.python or "")
        except InvalidVersion:
            return float("inf")
        return abs(asked.minor - named.minor) if asked.major == named.major else float("inf")

    offered = [rule for rule in config.include if rules.apply(rule) and distance(rule) < float("inf")]
    least = min(map(distance, offered), default=0) if nearest else 0
    fitting = [rule for rule in offered if distance(rule) == least]
    if not fitting:
        return None
    best = max(fitting, key=lambda rule: sum(value == "" for value in rule.req.values()))
    return best, best.entries()


def _read(config: AsvConfig, chosen: dict[Key, str | None], source: str, notes: list[str]) -> MatrixChoice:
    requirements: list[DeclaredRequirement] = []
    dropped: list[DroppedRequirement] = []
    system_packages: dict[str, None] = {}
    variables: dict[str, dict[str, str]] = {"env": {}, "env_nobuild": {}}
    for (kind, key), value in chosen.items():
        if value is None:
            continue
        if kind in variables:
            variables[kind][key] = value
            continue
        named = [item for item in config.matrix.req.get(key, ()) if item is not None]
        if len(named) > 1 and source.endswith(":matrix"):
            notes.append(f"{source} names {key} {', '.join(item or 'any' for item in named)}: took {value or 'any'}")
        read = read_conda_name(key, value, source, conda=config.environment_type.startswith(_CONDA_TOOLS))
        requirements += read.requirements
        dropped += read.dropped
        system_packages.update(dict.fromkeys(read.system_packages))
    return MatrixChoice(
        requirements=tuple(requirements),
        dropped=tuple(dropped),
        system_packages=tuple(system_packages),
        environment=variables["env"],
        run_environment=variables["env_nobuild"],
        notes=tuple(notes),
    )


def read_conda_name(key: str, value: str, source: str, *, conda: bool) -> MatrixChoice:
    """Return what `key: value` requires: a requirement, Debian packages, or nothing; *conda* decides how the version is
    read.
    """
    if key.startswith("pip+"):
        return MatrixChoice(requirements=(_declaration(key.removeprefix("pip+"), value, source, prefix_match=False),))
    meaning = meaning_of(key)
    if meaning.project:
        return MatrixChoice(requirements=(_declaration(meaning.project, value, source, prefix_match=conda),))
    drop = DroppedRequirement(requirement=f"{key} {value}".strip(), source=source, reason=meaning.reason)
    return MatrixChoice(dropped=(drop,), system_packages=meaning.system_packages)


def _ranked(values: Values) -> list[str | None]:
    """Best first: any version, then versions in descending order, then invalid versions, then absence."""

    def rank(value: str | None) -> tuple[int, Version]:
        if not value:
            return (0 if value is None else 3), Version("0")
        try:
            return 2, Version(value.strip("=* ").rstrip("."))
        except InvalidVersion:
            return 1, Version("0")

    return sorted(values, key=rank, reverse=True)


def _declaration(project: str, value: str, source: str, *, prefix_match: bool) -> DeclaredRequirement:
    """The requirement behind `project: value`; conda's `1.2` means 1.2.*, pip's means 1.2 itself."""
    value = value.strip()
    if not value:
        text = project
    elif value.startswith(_SPECIFIER_STARTS):
        exact = value.removeprefix("=") if value.startswith("=") and not value.startswith("==") else value
        text = f"{project}{value}" if exact == value else f"{project}=={exact.rstrip('.*')}.*"
    elif value.endswith("*"):
        text = f"{project}=={value}"
    else:
        text = f"{project}=={value}.*" if prefix_match else f"{project}=={value}"
    return DeclaredRequirement(text=text, source=source)
