"""Metadata of a package from one project file, or from all of them together. `None` means: not declared here."""

from __future__ import annotations

import re
from typing import Generic, TypeVar

from pydantic import Field

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .hatch_hooks import BuildHook

T = TypeVar("T")
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


class Sourced(Frozen, Generic[T]):
    """A declared value, and its place."""

    value: T
    source: str


class ProjectMetadata(Frozen):
    """The parts of a package's metadata that an environment depends on."""

    name: Sourced[str] | None = None
    requires_python: Sourced[str] | None = None
    classifiers: Sourced[tuple[str, ...]] | None = Field(
        default=None, description="`3.x` versions the trove classifiers name"
    )
    dependencies: tuple[DeclaredRequirement, ...] | None = None
    extras: dict[str, tuple[DeclaredRequirement, ...]] = Field(default_factory=dict)
    groups: dict[str, tuple[DeclaredRequirement, ...]] = Field(default_factory=dict, description="PEP 735 groups")
    build_requires: tuple[DeclaredRequirement, ...] | None = None
    setup_requires: tuple[DeclaredRequirement, ...] = ()
    build_backend: str | None = None
    build_hooks: tuple[BuildHook, ...] = ()
    import_names: tuple[str, ...] = Field(default=(), description="packages and modules it says it installs")
    source_folders: tuple[str, ...] = Field(default=(), description="folders it says they lie in")
    unread: tuple[DroppedRequirement, ...] = Field(
        default=(), description="declarations that are known only by running code"
    )

    def over(self, lower: ProjectMetadata) -> ProjectMetadata:
        """Return the value of `self` if it has one, else that of *lower*."""
        return ProjectMetadata(
            name=self.name or lower.name,
            requires_python=self.requires_python or lower.requires_python,
            classifiers=self.classifiers or lower.classifiers,
            dependencies=lower.dependencies if self.dependencies is None else self.dependencies,
            extras={**lower.extras, **self.extras},
            groups={**lower.groups, **self.groups},
            build_requires=lower.build_requires if self.build_requires is None else self.build_requires,
            setup_requires=self.setup_requires + lower.setup_requires,
            build_backend=self.build_backend or lower.build_backend,
            build_hooks=self.build_hooks or lower.build_hooks,
            import_names=self.import_names + lower.import_names,
            source_folders=self.source_folders + lower.source_folders,
            unread=self.unread + (lower.unread if self.dependencies is None else ()),
        )


def sourced(value: object, source: str) -> Sourced[str] | None:
    """Return *value* if it is a non-empty string."""
    return Sourced(value=value, source=source) if isinstance(value, str) and value else None


def python_classifiers(classifiers: object, source: str) -> Sourced[tuple[str, ...]] | None:
    """The `3.x` versions among trove classifiers, a list or the lines of a text; None when they name none."""
    lines = classifiers.splitlines() if isinstance(classifiers, str) else classifiers
    named = [_CLASSIFIER.fullmatch(str(line).strip()) for line in (lines if isinstance(lines, list | tuple) else ())]
    versions = {match[1] for match in named if match is not None}
    if not versions:
        return None
    return Sourced(value=tuple(sorted(versions, key=lambda version: int(version.split(".")[1]))), source=source)
