"""Imports of benchmarks besides the package's own requirements, chosen among the project's other declarations.

An import by itself implies nothing: if no extra, group or file of the repository names the project, the build must show
that it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from formulacode_dagster.building.declarations.metadata.project import ProjectMetadata
from formulacode_dagster.models.base import Frozen

from .asv_config import AsvConfig
from .conda_environment import read_conda_environment
from .declared_requirement import DeclaredRequirement, read_requirements_file, requirement_name, validate
from .imports import projects_of
from .requirements import Extras
from .tree import Tree

_BENCHMARKS = re.compile(r"(^|[-_./])(asv|bench|benchmarks?|benchmarking)($|[-_.])")
_REQUIREMENTS = re.compile(r"(^|/)([\w.-]*requirements?[\w.-]*|requirements/[\w./-]*)\.(txt|in|pip)$")
_ENVIRONMENTS = re.compile(r"(^|/)[\w.-]*environment[\w.-]*\.ya?ml$")
_FOR_OTHERS = re.compile(
    r"(^|[-_./])(binder|build|constraints?|docs?|format|formatting|lint|linting|mypy|readthedocs|release|rtd|style|types?"
    r"|typing|wheel)([-_.]|$)"
)
_ELSEWHERE = re.compile(
    r"(^|/)(\.binder|binder|docs?|examples?|tutorials?|templates?|vendor|validation|[^/{}]*[{}][^/]*)/"
)
_MOST_FILES = 40


class OptionalGroup(Frozen):
    """Requirements that the project declares under one name, for optional use."""

    name: str
    items: tuple[DeclaredRequirement, ...]
    for_benchmarks: bool = False


class OptionalChoice(Frozen):
    """Requirements added for the benchmarks."""

    requirements: tuple[DeclaredRequirement, ...] = ()
    notes: tuple[str, ...] = ()


def optional_groups(
    tree: Tree, config: AsvConfig, metadata: ProjectMetadata, *, own_name: str, package: str = "."
) -> tuple[OptionalGroup, ...]:
    """Return all declared requirements except those at run time, groups for benchmarks first.

    *package* is the folder of the package: a file there does not belong to the suite just because asv's configuration
    is there.
    """
    extras = Extras(metadata, own_name)
    groups = [
        *(_group(f"extra {name}", name, extras.requirements(name)) for name in metadata.extras),
        *(_group(f"group {name}", name, items) for name, items in metadata.groups.items()),
        *_files(tree, config, package),
    ]
    return tuple(sorted(groups, key=lambda group: not group.for_benchmarks))


def requirements_for(import_name: str, among: Iterable[OptionalGroup]) -> tuple[DeclaredRequirement, ...]:
    """The lines of the first group that names a project which may carry *import_name*; none when none does."""
    wanted = projects_of(import_name.partition(".")[0])
    for group in among:
        accepted = validate(group.items).accepted
        for project in wanted:
            lines = tuple(item for item in accepted if requirement_name(item.text) == project)
            if lines:
                return lines
    return ()


def choose_optional(
    imports: Mapping[str, str], have: Collection[str], among: Iterable[OptionalGroup], *, own_names: Collection[str]
) -> OptionalChoice:
    """Return those of *among* that the benchmarks' *imports* (module → its place) require, except the projects *have*.

    A group meant for benchmarks is taken whole when anything imported comes from it; of the others only the lines
    imported are taken. Benchmarks that import the project's tests need pytest, too. *own_names* are the package's own
    import names.
    """
    names = tuple(among)
    tests = next((place for name, place in imports.items() if _is_test_module(name, own_names)), "")
    if tests:
        imports = {**imports, "pytest": imports.get("pytest", tests)}
    needed = {
        name: place
        for name, place in imports.items()
        if name.partition(".")[0] not in own_names and not set(projects_of(name.partition(".")[0])) & set(have)
    }
    added: dict[str, DeclaredRequirement] = {}
    notes: list[str] = []
    for group in names if imports else ():
        place = next((p for name, p in imports.items() if group.for_benchmarks and requirements_for(name, [group])), "")
        if place:
            notes.append(f"{group.name} is taken for the benchmarks: {place} imports from it")
            added.update({item.text: item for item in group.items})
    got = {requirement_name(item.text) for item in validate(added.values()).accepted}
    for name, place in needed.items():
        if set(projects_of(name.partition(".")[0])) & got:
            continue
        lines = requirements_for(name, names)
        if lines:
            notes.append(f"{', '.join(i.text for i in lines)} ({lines[0].source}) is taken: {place} imports {name}")
            added.update({item.text: item for item in lines})
            got.update(requirement_name(item.text) for item in lines)
    return OptionalChoice(requirements=tuple(added.values()), notes=tuple(notes))


def _is_test_module(name: str, own_names: Collection[str]) -> bool:
    first, *rest = name.split(".")
    return (first in own_names and bool({"test", "tests", "testing"} & set(rest))) or first == "tests"


def _group(name: str, description: str, items: tuple[DeclaredRequirement, ...]) -> OptionalGroup:
    return OptionalGroup(name=name, items=items, for_benchmarks=_BENCHMARKS.search(description.lower()) is not None)


def _files(tree: Tree, config: AsvConfig, package: str) -> Iterator[OptionalGroup]:
    """Return requirements files and conda environments, the suite's first, without those of documentation."""
    paths = [
        path
        for path in tree.files
        if (_REQUIREMENTS.search(path) or _ENVIRONMENTS.search(path))
        and not _ELSEWHERE.search(path)
        and not _FOR_OTHERS.search(path.rpartition("/")[2])
    ]
    beside = {config.folder, config.benchmark_dir} - {".", package}
    paths.sort(key=lambda path: (path.rpartition("/")[0] not in beside, path.count("/"), path))
    for path in paths[:_MOST_FILES]:
        if _ENVIRONMENTS.search(path):
            read = read_conda_environment(tree, path)
            items = read.requirements if read is not None else ()
        else:
            items = read_requirements_file(tree, path)
        if items:
            group = _group(path, path, items)
            suited = not _ENVIRONMENTS.search(path) and (group.for_benchmarks or path.rpartition("/")[0] in beside)
            yield group.model_copy(update={"for_benchmarks": suited})
