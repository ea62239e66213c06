"""Groups of dependencies that poetry, pdm, hatch and uv keep in tables of their own in pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formulacode_dagster.declarations.declaration import Declaration

from . import poetry

Table = Mapping[str, object]


def tool_groups(tool: Table, path: str) -> dict[str, tuple[Declaration, ...]]:
    """Name of each group → what it asks for; *tool* is the table `tool` of the pyproject.toml at *path*.

    Groups of one name in several tables come together.
    """
    found: dict[str, tuple[Declaration, ...]] = {}
    for name, items in (*_poetry(tool, path), *_lists(tool, path), *_hatch(tool, path)):
        found[name] = (*found.get(name, ()), *items)
    return {name: items for name, items in found.items() if items}


def tables_below(table: Table, *keys: str) -> Iterator[tuple[str, Table]]:
    """The tables in the table at *keys*, by name."""
    for key in keys:
        inner = table.get(key)
        if not isinstance(inner, Mapping):
            return
        table = inner
    yield from ((name, value) for name, value in table.items() if isinstance(value, Mapping))


def _texts(value: object, source: str) -> tuple[Declaration, ...]:
    items = value if isinstance(value, list) else []
    return tuple(Declaration(text=item, source=source) for item in items if isinstance(item, str))


def _poetry(tool: Table, path: str) -> Iterator[tuple[str, tuple[Declaration, ...]]]:
    named = [(f"group.{name}", name, table) for name, table in tables_below(tool, "poetry", "group")]
    for place, name, group in (*named, ("", "dev", dict(tables_below(tool, "poetry")))):
        key = "dependencies" if place else "dev-dependencies"
        table = group.get(key)
        source = ".".join(filter(None, (f"{path}:tool.poetry", place, key)))
        for project, value in table.items() if isinstance(table, Mapping) else ():
            yield name, tuple(poetry.declarations(project, value, source=source))


def _lists(tool: Table, path: str) -> Iterator[tuple[str, tuple[Declaration, ...]]]:
    """`tool.pdm.dev-dependencies.NAME` and `tool.uv.dev-dependencies`."""
    pdm = dict(tables_below(tool, "pdm")).get("dev-dependencies", {})
    yield from ((name, _texts(value, f"{path}:tool.pdm.dev-dependencies.{name}")) for name, value in pdm.items())
    uv = tool.get("uv")
    if isinstance(uv, Mapping):
        yield "dev", _texts(uv.get("dev-dependencies"), f"{path}:tool.uv.dev-dependencies")


def _hatch(tool: Table, path: str) -> Iterator[tuple[str, tuple[Declaration, ...]]]:
    for name, table in tables_below(tool, "hatch", "envs"):
        for key in ("dependencies", "extra-dependencies"):
            yield name, _texts(table.get(key), f"{path}:tool.hatch.envs.{name}.{key}")
