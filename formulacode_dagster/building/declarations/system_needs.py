"""Build requirements of a package besides its declared ones: Debian packages, and tools from the index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from pydantic import Field

from formulacode_dagster.building.declarations.metadata.project import ProjectMetadata
from formulacode_dagster.models.base import Frozen

from .build_files import BUILD_FILES, BuildDependency, read_cmake, read_meson
from .ci_files import AptPackage, read_ci_files
from .conda_names import known_system_packages
from .declared_requirement import DeclaredRequirement, requirement_name, validate
from .imports import projects_of
from .providers import DependencyKind, known_apt_packages, provider_of
from .setup_build import SetupBuild, read_setup_build
from .shipped_tables import shipped_table
from .tree import Tree, join

_CMAKE_BACKENDS = ("py_build_cmake", "scikit_build_core")
_COMPILED_BACKENDS = (*_CMAKE_BACKENDS, "enscons", "maturin", "mesonpy", "sipbuild")
_CMAKE_TOOLS = frozenset({"scikit-build", "scikit-build-core"})
_RUST_TOOLS = frozenset({"maturin", "setuptools-rust"})
_BUILD_TOOLS = frozenset(
    {"astropy-helpers", "cffi", "cppy", "cython", "extension-helpers", "future", "jinja2", "mypy", "numpy"}
    | {"packaging", "pbr", "pkgconfig", "py-cpuinfo", "pybind11", "pythran", "scikit-build", "scipy", "setuptools-git"}
    | {"setuptools-rust", "setuptools-scm", "six", "tempita", "toml", "tomli", "versioneer", "versioningit", "wheel"}
)
"""Modules a setup.py imports in order to build; its other imports are for its other commands."""
_NAMED = re.compile(r"""['"](?:-l)?([\w.+-]+)['"]|(?:^|\s)-l([\w.+-]+)""")
_LARGEST = 200_000
_LISTS = frozenset({"CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH"})


class SystemNeeds(Frozen):
    """Requirements of the build files and CI of one commit."""

    apt_packages: tuple[str, ...] = ()
    build_requirements: tuple[DeclaredRequirement, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict, description="paths of those libraries for compilers")
    notes: tuple[str, ...] = Field(default=(), description="file and line of each requirement")


def read_system_needs(tree: Tree, folder: str, metadata: ProjectMetadata) -> SystemNeeds:
    """Return the build requirements of the package in *folder*, from its build files and, if it compiles anything, from
    CI.

    Names in no table yield nothing: the build then shows what is missing.
    """
    setup = read_setup_build(tree, folder)
    backend = metadata.build_backend or ""
    declared = validate((*(metadata.build_requires or ()), *metadata.setup_requires)).accepted
    tools = {requirement_name(item.text) for item in declared}
    uses_rust = bool(tools & _RUST_TOOLS)
    uses_cmake = backend.startswith(_CMAKE_BACKENDS) or bool(tools & _CMAKE_TOOLS) or setup.calls_cmake
    dependencies = (
        *setup.dependencies,
        *(read_meson(tree, folder) if backend.startswith("mesonpy") else ()),
        *(read_cmake(tree, folder) if uses_cmake else ()),
        *(
            [BuildDependency(kind=DependencyKind.PROGRAMS, name="cargo", source="build requirements")]
            if uses_rust
            else ()
        ),
    )
    needs = _Needs()
    for dependency in dependencies:
        needs.add(dependency)
    if needs.packages and any(dependency.kind is DependencyKind.PKG_CONFIG for dependency in dependencies):
        needs.packages["pkg-config"] = None
    if metadata.build_requires is None:
        needs.requirements += _imported(tree, folder, setup)
    if setup.calls_cmake or tools & _CMAKE_TOOLS:
        needs.requirements += [
            DeclaredRequirement(text=name, source="builds with CMake") for name in ("cmake", "ninja")
        ]
    if setup.has_extensions or uses_cmake or uses_rust or backend.startswith(_COMPILED_BACKENDS):
        needs.add_ci(read_ci_files(tree), _words(tree, folder))
    wanted = {item.text: item for item in needs.requirements if requirement_name(item.text) not in tools}
    return SystemNeeds(
        apt_packages=tuple(needs.packages),
        build_requirements=tuple(wanted.values()),
        environment=needs.environment,
        notes=tuple(needs.notes),
    )


class _Needs:
    def __init__(self) -> None:
        self.packages: dict[str, None] = {}
        self.requirements: list[DeclaredRequirement] = []
        self.environment: dict[str, str] = {}
        self.notes: list[str] = []

    def add(self, dependency: BuildDependency) -> None:
        provider = provider_of(dependency.kind, dependency.name)
        if not provider:
            return
        self.packages.update(dict.fromkeys(provider.apt_packages))
        self.requirements += [
            DeclaredRequirement(text=text, source=dependency.source) for text in provider.requirements
        ]
        for name, value in provider.environment.items():
            before = self.environment.get(name, "").split(":") if name in _LISTS else []
            self.environment[name] = ":".join(dict.fromkeys(filter(None, (*before, *value.split(":")))))
        brings = ", ".join((*provider.apt_packages, *provider.requirements))
        self.notes.append(f"{dependency.source} asks for {dependency.name}: {brings}")

    def add_ci(self, packages: Iterable[AptPackage], words: frozenset[str]) -> None:
        """Return CI's packages that a build file mentions, if Debian is known to have them; a note for the rest."""
        names = _ubuntu_names()
        for package in packages:
            name = names.renamed.get(package.name, package.name)
            if name not in names.known or name in self.packages:
                continue
            if words & _stems(name):
                self.packages[name] = None
                self.notes.append(f"{package.source} installs {package.name}, and a build file names it: {name}")
            elif name.endswith("-dev"):
                self.notes.append(f"{package.source} installs {package.name}: no build file names it, left out")


def _stems(package: str) -> frozenset[str]:
    """Return the names by which a build file may refer to a Debian package: `gsl` for `libgsl-dev`."""
    plain = package.removesuffix("-dev")
    return frozenset({plain, plain.removeprefix("lib"), plain.removeprefix("lib").rstrip("0123456789.")})


def _words(tree: Tree, folder: str) -> frozenset[str]:
    """Return every quoted string in the build files of *folder*, and names of linked libraries."""
    texts = (tree.text(join(folder, name) or "") or "" for name in BUILD_FILES)
    return frozenset(words[0] or words[1] for text in texts for words in _NAMED.findall(text[:_LARGEST]))


class _UbuntuNames(Frozen):
    known: frozenset[str]
    renamed: dict[str, str]


@cache
def _ubuntu_names() -> _UbuntuNames:
    data = shipped_table("ubuntu_names")
    packages = {*data["known"], *data["renamed"].values(), *known_apt_packages(), *known_system_packages()}
    return _UbuntuNames(known=packages, renamed=data["renamed"])


def _imported(tree: Tree, folder: str, setup: SetupBuild) -> list[DeclaredRequirement]:
    """Build tools that setup.py imports without anybody declaring them, as was usual before PEP 518."""
    needs_cython = any(path.endswith(".pyx") and not _is_translated(tree, path) for path in tree.below(folder))
    guarded = [(name, place) for name, place in setup.optional_imports if name.partition(".")[0] == "Cython"]
    requirements: dict[str, DeclaredRequirement] = {}
    for name, place in (*setup.imports, *(guarded if needs_cython else ())):
        project = next((tool for tool in projects_of(name.partition(".")[0]) if tool in _BUILD_TOOLS), None)
        if project is not None:
            requirements.setdefault(project, DeclaredRequirement(text=project, source=f"{place}: import {name}"))
    return list(requirements.values())


def _is_translated(tree: Tree, path: str) -> bool:
    return any(tree.has(path.removesuffix(".pyx") + suffix) for suffix in (".c", ".cpp"))
