"""pyproject.toml: PEP 518, 621 and 735, and the tables of other back ends."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    read_requirements_files,
    with_included,
)
from formulacode_dagster.building.declarations.tree import Tree, join
from formulacode_dagster.models.environment import DroppedRequirement

from . import poetry
from .hatch_hooks import build_hooks
from .project import ProjectMetadata, python_classifiers, sourced
from .tables import Table, declared, strings, table_at
from .tool_groups import tool_groups

_LARGEST = 150_000


def load_pyproject(tree: Tree, folder: str) -> Table:
    """Return the content of `pyproject.toml` in *folder*, empty if there is none; raises ValueError with the reason if
    it cannot be read.
    """
    text = tree.text(join(folder, "pyproject.toml") or "") or ""
    if len(text) > _LARGEST:
        raise ValueError(f"is longer than {_LARGEST} characters")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not valid TOML: {error}") from error


def read_pyproject(tree: Tree, folder: str) -> ProjectMetadata:
    """Return the metadata in `pyproject.toml` in *folder*; an invalid file yields only a note."""
    path = join(folder, "pyproject.toml") or ""
    if not tree.has(path):
        return ProjectMetadata()
    try:
        data = load_pyproject(tree, folder)
    except ValueError as error:
        return ProjectMetadata(unread=(DroppedRequirement(requirement=path, source=path, reason=str(error)),))
    build = _build_system(data, path)
    project = data.get("project")
    own = _pep621(tree, folder, data, path) if isinstance(project, Mapping) else ProjectMetadata()
    tool = table_at(data, "tool")
    build = build.model_copy(
        update={"groups": {**tool_groups(tool, path), **build.groups}, "build_hooks": build_hooks(tool, path)}
    )
    return own.over(_poetry(table_at(tool, "poetry"), path)).over(_flit(table_at(tool, "flit"), path)).over(build)


def _build_system(data: Table, path: str) -> ProjectMetadata:
    build = data.get("build-system")
    if not isinstance(build, Mapping):
        return ProjectMetadata(groups=_groups(data, path))
    backend = build.get("build-backend")
    requires = declared(build["requires"], f"{path}:build-system.requires") if "requires" in build else None
    return ProjectMetadata(
        build_requires=requires,
        build_backend=backend if isinstance(backend, str) else None,
        groups=_groups(data, path),
        import_names=_backend_packages(table_at(data, "tool")),
        source_folders=_backend_folders(table_at(data, "tool")),
    )


def _groups(data: Table, path: str) -> dict[str, tuple[DeclaredRequirement, ...]]:
    own: dict[str, tuple[DeclaredRequirement, ...]] = {}
    included: dict[str, list[str]] = {}
    for name, value in table_at(data, "dependency-groups").items():
        entries = value if isinstance(value, list) else []
        own[name] = declared(entries, f"{path}:dependency-groups.{name}")
        names = [entry.get("include-group") for entry in entries if isinstance(entry, Mapping)]
        included[name] = [other for other in names if isinstance(other, str)]
    return {name: with_included([name], own, included) for name in own}


def _backend_packages(tool: Table) -> tuple[str, ...]:
    setuptools, wheel = table_at(tool, "setuptools"), table_at(tool, "hatch", "build", "targets", "wheel")
    paths = strings(wheel.get("packages")) + strings(table_at(tool, "scikit-build", "wheel").get("packages"))
    names = [
        *(*strings(setuptools.get("packages")), *strings(setuptools.get("py-modules"))),
        *(path.rpartition("/")[2] for path in paths),
        *strings(table_at(tool, "flit", "module").get("name")),
        *strings(table_at(tool, "maturin").get("module-name")),
    ]
    return tuple(dict.fromkeys(name.split(".")[0] for name in names))


def _backend_folders(tool: Table) -> tuple[str, ...]:
    wheel = table_at(tool, "hatch", "build", "targets", "wheel")
    folders = [
        *strings(table_at(tool, "setuptools", "packages", "find").get("where")),
        *strings(table_at(tool, "setuptools", "package-dir").get("")),
        *strings(table_at(tool, "maturin").get("python-source")),
        *(path.rpartition("/")[0] for path in strings(wheel.get("packages")) if "/" in path),
    ]
    return tuple(dict.fromkeys(folders))


def _pep621(tree: Tree, folder: str, data: Table, path: str) -> ProjectMetadata:
    project = table_at(data, "project")
    dynamic = set(strings(project.get("dynamic")))
    extras = {
        name: declared(entries, f"{path}:project.optional-dependencies.{name}")
        for name, entries in table_at(project, "optional-dependencies").items()
    }
    extras.update(_dynamic_extras(tree, folder, data))
    dependencies: tuple[DeclaredRequirement, ...] | None
    if "dependencies" in project or "dependencies" not in dynamic:
        dependencies = declared(project.get("dependencies"), f"{path}:project.dependencies")
    else:
        dependencies = _dynamic_dependencies(tree, folder, data)
    return ProjectMetadata(
        name=sourced(project.get("name"), f"{path}:project.name"),
        requires_python=sourced(project.get("requires-python"), f"{path}:project.requires-python"),
        classifiers=python_classifiers(project.get("classifiers"), f"{path}:project.classifiers"),
        dependencies=dependencies,
        extras=extras,
    )


def _dynamic_dependencies(tree: Tree, folder: str, data: Table) -> tuple[DeclaredRequirement, ...] | None:
    """Return `dynamic = ["dependencies"]` if the table names the file; None if setup.cfg or setup.py declares them."""
    names = strings(table_at(data, "tool", "setuptools", "dynamic", "dependencies").get("file"))
    names += strings(table_at(data, "tool", "hatch", "metadata", "hooks", "requirements_txt").get("files"))
    return read_requirements_files(tree, folder, names) if names else None


def _dynamic_extras(tree: Tree, folder: str, data: Table) -> dict[str, tuple[DeclaredRequirement, ...]]:
    tables = dict(table_at(data, "tool", "setuptools", "dynamic", "optional-dependencies"))
    hook = table_at(data, "tool", "hatch", "metadata", "hooks", "requirements_txt", "optional-dependencies")
    files = {name: strings(value.get("file")) for name, value in tables.items() if isinstance(value, Mapping)}
    files.update({name: strings(value) for name, value in hook.items()})
    return {name: read_requirements_files(tree, folder, names) for name, names in files.items()}


def _poetry(table: Table, path: str) -> ProjectMetadata:
    if not table:
        return ProjectMetadata()
    dependencies = table_at(table, "dependencies")
    required: list[DeclaredRequirement] = []
    optional: dict[str, tuple[DeclaredRequirement, ...]] = {}
    for name, value in dependencies.items():
        if name.lower() == "python":
            continue
        requirements = poetry.requirements(name, value, source=f"{path}:tool.poetry.dependencies")
        if isinstance(value, Mapping) and value.get("optional") is True:
            optional[name.lower()] = requirements
        else:
            required.extend(requirements)
    extras = {
        name: tuple(item for entry in strings(entries) for item in optional.get(entry.lower(), ()))
        for name, entries in table_at(table, "extras").items()
    }
    python = dependencies.get("python")
    requires = poetry.specifier(str(python)) if python is not None else None
    listed = table.get("packages")
    packages = [entry for entry in (listed if isinstance(listed, list) else ()) if isinstance(entry, Mapping)]
    return ProjectMetadata(
        name=sourced(table.get("name"), f"{path}:tool.poetry.name"),
        requires_python=sourced(requires, f"{path}:tool.poetry.dependencies.python"),
        classifiers=python_classifiers(table.get("classifiers"), f"{path}:tool.poetry.classifiers"),
        dependencies=tuple(required) if dependencies else None,
        extras=extras,
        import_names=tuple(str(entry.get("include", "")).split("/")[0] for entry in packages),
        source_folders=tuple(str(entry["from"]) for entry in packages if "from" in entry),
    )


def _flit(table: Table, path: str) -> ProjectMetadata:
    metadata = table_at(table, "metadata")
    if not metadata:
        return ProjectMetadata()
    return ProjectMetadata(
        name=sourced(metadata.get("dist-name") or metadata.get("module"), f"{path}:tool.flit.metadata"),
        requires_python=sourced(metadata.get("requires-python"), f"{path}:tool.flit.metadata.requires-python"),
        classifiers=python_classifiers(metadata.get("classifiers"), f"{path}:tool.flit.metadata.classifiers"),
        dependencies=declared(metadata.get("requires"), f"{path}:tool.flit.metadata.requires"),
        extras={
            name: declared(entries, f"{path}:tool.flit.metadata.requires-extra.{name}")
            for name, entries in table_at(metadata, "requires-extra").items()
        },
        import_names=tuple(strings(metadata.get("module"))),
    )
