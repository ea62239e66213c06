"""Groups of dependencies that poetry, pdm, hatch and uv keep in tables of their own in pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterator

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement

from . import poetry
from .tables import Table, declared, table_at, tables_below


def tool_groups(tool: Table, path: str) -> dict[str, tuple[DeclaredRequirement, ...]]:
    """Return name of each group → its requirements; *tool* is the table `tool` of the pyproject.toml at *path*.

    Groups of one name in several tables come together.
    """
    groups: dict[str, tuple[DeclaredRequirement, ...]] = {}
    for name, items in (*_poetry(tool, path), *_lists(tool, path), *_hatch(tool, path)):
        groups[name] = (*groups.get(name, ()), *items)
    return {name: items for name, items in groups.items() if items}


def _poetry(tool: Table, path: str) -> Iterator[tuple[str, tuple[DeclaredRequirement, ...]]]:
    places = {f"group.{name}.dependencies": (name, table) for name, table in tables_below(tool, "poetry", "group")}
    tables = {place: (name, table_at(table, "dependencies")) for place, (name, table) in places.items()}
    tables["dev-dependencies"] = ("dev", table_at(tool, "poetry", "dev-dependencies"))
    for place, (name, table) in tables.items():
        for project, value in table.items():
            yield name, poetry.requirements(project, value, source=f"{path}:tool.poetry.{place}")


def _lists(tool: Table, path: str) -> Iterator[tuple[str, tuple[DeclaredRequirement, ...]]]:
    """`tool.pdm.dev-dependencies.NAME` and `tool.uv.dev-dependencies`."""
    for name, value in table_at(tool, "pdm", "dev-dependencies").items():
        yield name, declared(value, f"{path}:tool.pdm.dev-dependencies.{name}")
    yield "dev", declared(table_at(tool, "uv").get("dev-dependencies"), f"{path}:tool.uv.dev-dependencies")


def _hatch(tool: Table, path: str) -> Iterator[tuple[str, tuple[DeclaredRequirement, ...]]]:
    for name, table in tables_below(tool, "hatch", "envs"):
        for key in ("dependencies", "extra-dependencies"):
            yield name, declared(table.get(key), f"{path}:tool.hatch.envs.{name}.{key}")
