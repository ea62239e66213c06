"""Sources of a missing header, library, program or module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache

from pydantic import Field

from formulacode_dagster.models.base import Frozen

from .imports import projects_of
from .shipped_tables import shipped_table


class DependencyKind(StrEnum):
    """The tables of `providers.toml`."""

    HEADERS = "headers"
    LIBRARIES = "libraries"
    SHARED_OBJECTS = "shared_objects"
    PKG_CONFIG = "pkg_config"
    CMAKE_PACKAGES = "cmake_packages"
    PROGRAMS = "programs"
    MODULES = "modules"


class Provider(Frozen):
    """The provider of a missing item."""

    apt_packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return True if it provides anything: the tables also list names without a provider."""
        return bool(self.apt_packages or self.requirements or self.environment)


def provider_of(kind: DependencyKind, name: str) -> Provider | None:
    """Return the provider of *name*, which *kind* of table lists; None if no table lists it. Not for modules."""
    table = _tables()[kind]
    return next((table[key] for key in _spellings(kind, name) if table.get(key)), None)


def known_apt_packages() -> frozenset[str]:
    """Every Debian package that a table names."""
    return frozenset(
        name for table in _tables().values() for provider in table.values() for name in provider.apt_packages
    )


def requirement_for_module(module: str, declared: Mapping[str, str]) -> str | None:
    """The requirement that brings *module*, a dotted import name.

    *declared* lists the repository's declarations, by normalised project name; its own spelling comes first, then the
    table of well known modules. Nothing is guessed: None for everything else.
    """
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    known = [
        _tables()[DependencyKind.MODULES][name].requirements[0]
        for name in names
        if name in _tables()[DependencyKind.MODULES]
    ]
    spoken = (declared[project] for project in (*known, *projects_of(parts[0])) if project in declared)
    return next(spoken, known[0] if known else None)


def _spellings(kind: DependencyKind, name: str) -> Iterator[str]:
    yield name
    yield name.lower()
    if kind is DependencyKind.HEADERS:
        parts = name.split("/")
        yield from ("/".join(parts[:length]) + "/" for length in range(len(parts) - 1, 0, -1))
    if kind is DependencyKind.PKG_CONFIG and name.split():
        word = name.lower().split()[0]
        yield from (word, word.removeprefix("lib"), f"lib{word}")
    if kind is DependencyKind.SHARED_OBJECTS:
        yield f"lib{name}"


@cache
def _tables() -> dict[DependencyKind, dict[str, Provider]]:
    data = shipped_table("providers")
    return {kind: {name: _provider(kind, value) for name, value in data[kind].items()} for kind in DependencyKind}


def _provider(kind: DependencyKind, value: object) -> Provider:
    if kind is DependencyKind.MODULES:
        return Provider.model_validate({"requirements": [value]})
    return Provider.model_validate(value if isinstance(value, dict) else {"apt_packages": value})
