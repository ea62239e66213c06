"""Comments on tables, views and columns in the database."""

from __future__ import annotations

from collections.abc import Iterable

from formulacode_dagster.models.columns import TableColumn


def comments(kind: str, name: str, meaning: str, columns: Iterable[TableColumn]) -> str:
    """The statements that document the *kind* (`TABLE`, `VIEW`) called *name*, and its *columns*."""
    lines = [f"COMMENT ON {kind} {name} IS {_literal(meaning)};"]
    lines += [f'COMMENT ON COLUMN {name}."{column.name}" IS {_literal(column.description)};' for column in columns]
    return "\n".join(lines)


def _literal(text: str) -> str:
    # the driver takes a lone % for a placeholder
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"
