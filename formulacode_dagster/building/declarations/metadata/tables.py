"""Tables of a pyproject.toml, in which anything may be of another type than it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement

Table = Mapping[str, object]


def table_at(table: Table, *keys: str) -> Table:
    """Return the table below *table* at *keys*; empty if there is none."""
    for key in keys:
        value = table.get(key)
        if not isinstance(value, Mapping):
            return {}
        table = value
    return table


def tables_below(table: Table, *keys: str) -> Iterator[tuple[str, Table]]:
    """The tables in the table at *keys*, by name."""
    yield from ((name, value) for name, value in table_at(table, *keys).items() if isinstance(value, Mapping))


def strings(value: object) -> list[str]:
    """Return the strings of a list; a single string stands for a list of one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def declared(value: object, source: str) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements in a list of strings at *source*."""
    return tuple(DeclaredRequirement(text=text, source=source) for text in strings(value))
