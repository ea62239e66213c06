"""Repositories after they were discovered: renamed, or not tracked any more; and the GitHub that they are from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import BigInteger, Connection, Text, any_, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.repository import Repository, RepositoryState

from .artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS, REPOSITORIES
from .ledger import rename_item
from .tables import LEDGER, MONTHS_GITHUB


def add_alias(connection: Connection, month: str, repository_id: int, old_name: str, new_name: str) -> bool:
    """Call a repository of *month* by its *new_name*, and keep *old_name* as an alias; whether anything changed.

    The ledger entry of `repositories` is renamed with it, so the repository stays tracked. A difference in case only is
    a new name, not an alias.
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


def withdraw(connection: Connection, month: str, repositories: Sequence[Repository]) -> int:
    """Drop the pull requests that *month* took in from *repositories*; returns how many these were.

    Facts, changes, counts and the ledger entries of intake are removed together, so no later stage uses them, and a
    repository that is tracked again has its window requested again. Rows of later stages stay: they are read only
    through the facts, and count as done if these come back.
    """
    among = any_(cast([repository.id for repository in repositories], ARRAY(BigInteger)))
    names = {repository.full_name for repository in repositories}
    removed = 0
    for artifact in (MERGED_PULL_REQUESTS, INTAKE_COUNTS):
        columns = artifact.table.c
        gone = delete(artifact.table).where(columns.month == month, columns.repository_id == among)
        held_as = connection.execute(gone.returning(columns.repository)).scalars().all()
        names.update(held_as)
        removed += len(held_as) if artifact is MERGED_PULL_REQUESTS else 0
    changes = CHANGES.table.c
    connection.execute(delete(CHANGES.table).where(changes.month == month, changes.repository_id == among))
    of_intake = (LEDGER.c.month == month) & (LEDGER.c.stage == Stage.PULL_REQUESTS.value)
    repository = func.split_part(LEDGER.c.item, "#", 1)
    connection.execute(delete(LEDGER).where(of_intake, repository == any_(cast(sorted(names), ARRAY(Text)))))
    return removed


def record_github(connection: Connection, host: str) -> None:
    """Record *host* as the GitHub of all months, unless one is recorded."""
    row = {"id": 1, "host": host, "recorded_at": datetime.now(tz=UTC)}
    connection.execute(insert(MONTHS_GITHUB).values(row).on_conflict_do_nothing())


def recorded_github(connection: Connection) -> str:
    """Return the GitHub of all months; empty if none is recorded."""
    return connection.execute(select(MONTHS_GITHUB.c.host)).scalar_one_or_none() or ""


def repositories_seen(connection: Connection) -> set[tuple[int, str]]:
    """Return id and name of every repository of any month, but for those that only a list has."""
    columns = REPOSITORIES.table.c
    seen = select(columns.id, columns.full_name).where(columns.state != RepositoryState.VANISHED.value).distinct()
    return {(row.id, row.full_name) for row in connection.execute(seen)}
