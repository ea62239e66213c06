"""Which of the environments that an asv matrix spans is taken, and what it asks for."""

from __future__ import annotations

import itertools

from packaging.version import InvalidVersion, Version
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .asv_config import AsvConfig, Values, excluded
from .conda_names import meaning_of
from .declaration import Declaration

_MOST_COMBINATIONS = 4096
_CONDA_TOOLS = ("conda", "mamba", "rattler")
_SPECIFIER_STARTS = ("<", ">", "=", "!", "~")


class MatrixChoice(Frozen):
    """One environment of the matrix."""

    declarations: tuple[Declaration, ...] = ()
    dropped: tuple[DroppedRequirement, ...] = ()
    system_packages: tuple[str, ...] = Field(default=(), description="Debian packages behind conda names")
    environment: dict[str, str] = Field(default_factory=dict, description="variables of build and benchmark runs")
    notes: tuple[str, ...] = ()


def choose(config: AsvConfig, python: str) -> MatrixChoice:
    """The best environment for *python*: any version before the newest named one, `exclude` rules observed."""
    source = f"{config.path}:matrix"
    keys = [("req", key) for key in config.matrix.req] + [("env", key) for key in config.matrix.env]
    ranked = [_ranked(config.matrix.req[key] if kind == "req" else config.matrix.env[key]) for kind, key in keys]
    chosen: dict[tuple[str, str], str | None] = {}
    for combination in itertools.islice(itertools.product(*ranked), _MOST_COMBINATIONS):
        chosen = dict(zip(keys, combination, strict=True))
        if not excluded(config, python, chosen):
            break
    else:
        return MatrixChoice(notes=(f"every combination of {source} is excluded for Python {python}: none was taken",))

    declarations: list[Declaration] = []
    dropped: list[DroppedRequirement] = []
    system_packages: dict[str, None] = {}
    notes: list[str] = []
    environment: dict[str, str] = {}
    for (kind, key), value in chosen.items():
        if value is None:
            continue
        if kind == "env":
            environment[key] = value
            continue
        named = [item for item in config.matrix.req[key] if item is not None]
        if len(named) > 1:
            notes.append(f"{source} names {key} {', '.join(item or 'any' for item in named)}: took {value or 'any'}")
        written = f"{key} {value}".strip()
        if key.startswith("pip+"):
            declarations.append(_declaration(key.removeprefix("pip+"), value, source, prefix_match=False))
            continue
        meaning = meaning_of(key)
        if not meaning.project:
            dropped.append(DroppedRequirement(requirement=written, source=source, reason=meaning.reason))
            system_packages.update(dict.fromkeys(meaning.system_packages))
            continue
        conda = config.environment_type.startswith(_CONDA_TOOLS)
        declarations.append(_declaration(meaning.project, value, source, prefix_match=conda))
    return MatrixChoice(
        declarations=tuple(declarations),
        dropped=tuple(dropped),
        system_packages=tuple(system_packages),
        environment=environment,
        notes=tuple(notes),
    )


def _ranked(values: Values) -> list[str | None]:
    """Best first: any version, then versions downwards, then what is no version as written, then absence."""

    def rank(entry: tuple[int, str | None]) -> tuple[int, Version, int]:
        position, value = entry
        lowest = Version("0")
        if value is None:
            return (3, lowest, position)
        if value == "":
            return (0, lowest, position)
        try:
            return (1, Version(value.strip("=* ").rstrip(".")), -position)
        except InvalidVersion:
            return (2, lowest, position)

    entries = list(enumerate(values))
    versions = sorted((entry for entry in entries if rank(entry)[0] == 1), key=lambda e: rank(e)[1], reverse=True)
    others = sorted((entry for entry in entries if rank(entry)[0] != 1), key=rank)
    before = [entry for entry in others if rank(entry)[0] == 0]
    after = [entry for entry in others if rank(entry)[0] > 1]
    return [value for _, value in (*before, *versions, *after)]


def _declaration(project: str, value: str, source: str, *, prefix_match: bool) -> Declaration:
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
    return Declaration(text=text, source=source)
