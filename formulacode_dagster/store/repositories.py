"""Repositories of a month: what intake learns about them after they were discovered."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from formulacode_dagster.models.items import Stage

from .artifacts import REPOSITORIES
from .ledger import rename_item


def add_alias(connection: Connection, month: str, repository_id: int, old_name: str, new_name: str) -> bool:
    """Call a repository of *month* by its *new_name*, and keep *old_name* as an alias; whether anything changed.

    The ledger entry of `repositories` is renamed with it, so that the repository stays tracked. A difference in case
    only is a new name, and no alias.
    """
    table = REPOSITORIES.table
    this = (table.c.month == month) & (table.c.id == repository_id)
    row = connection.execute(select(table.c.full_name, table.c.aliases).where(this).with_for_update()).one_or_none()
    if row is None:
        return False
    known = {alias.lower(): alias for alias in (old_name, row.full_name, *row.aliases)}
    known.pop(new_name.lower(), None)
    aliases = sorted(known.values(), key=str.lower)
    if (row.full_name, list(row.aliases)) == (new_name, aliases):
        return False
    connection.execute(update(table).where(this).values(full_name=new_name, aliases=aliases))
    if row.full_name != new_name:
        rename_item(connection, month, Stage.REPOSITORIES, row.full_name, new_name)
    return True
