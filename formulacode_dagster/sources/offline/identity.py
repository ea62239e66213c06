"""Ids of repositories without a known id: derived from the name until GitHub's is known.

Such ids are negative, from -1 down to -2⁵²; GitHub's are positive, so they never collide. A month stores a repository
under one of them only: a known id is kept, and replaces the derived one when it becomes known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS, REPOSITORIES
from formulacode_dagster.operating.store.windows import names_taken_in, replace_window

_RANGE = 2**52
_UNSEEN = (RepositoryState.VANISHED, RepositoryState.PRIVATE)
"""States of rows of which only the name may be known."""


def derived_id(full_name: str) -> int:
    """Return the derived id of *full_name*, equal on every machine; case is ignored."""
    digest = hashlib.sha256(full_name.lower().encode()).digest()
    return -1 - int.from_bytes(digest[:8], "big") % _RANGE


def known_by_name(month: Month, name: str, state: RepositoryState = RepositoryState.ACTIVE) -> Repository:
    """Return a repository of *month* of which only the *name* is known."""
    return Repository(
        month=month.key,
        id=derived_id(name),
        node_id="",
        full_name=name,
        state=state,
        stars=UNKNOWN_STARS,
        language=UNKNOWN_LANGUAGE,
        config_path="",
    )


def with_vanished(month: Month, repositories: Sequence[Repository], asked_for: Sequence[str]) -> tuple[Repository, ...]:
    """Return *repositories*, and a vanished one for each name in *asked_for* that none of them has or had; by name."""
    names = {name.lower() for row in repositories for name in (row.full_name, *row.aliases)}
    missing = {name.lower(): name for name in asked_for if name.lower() not in names}
    absent = [known_by_name(month, name, RepositoryState.VANISHED) for name in missing.values()]
    return tuple(sorted((*repositories, *absent), key=lambda row: row.full_name.lower()))


def settle(connection: Connection, month: str, repositories: Sequence[Repository]) -> tuple[Repository, ...]:
    """Return *repositories* as stored for *month*: those known only by name get the id in the database.

    Windows of the month taken in under a derived id whose repository now has an id are removed, so no pull request is
    stored twice. A row that its source did not see becomes an alias of the one that has its id: after a rename the old
    name may lead nowhere. A repository with a window in *month* keeps the name that this has, which task ids are made
    of, unless another one is called so now. Raises ConfigurationError if two other rows are the same repository.
    """
    stored = _known(connection)
    by_id: dict[int, Repository] = {}
    for row in sorted(repositories, key=lambda row: (row.state in _UNSEEN, row.id <= 0)):
        settled = _adopt(row, stored)
        other = by_id.get(settled.id)
        if other is not None and row.state not in _UNSEEN:
            raise ConfigurationError(
                f"{other.full_name} and {row.full_name} are the same repository",
                why=f"both have the id {settled.id}",
                remedy="Keep one of them in the offline source, and name the other as its alias",
            )
        by_id[settled.id] = settled if other is None else _called(other, other.full_name, row)
    names = {derived_id(name) for row in by_id.values() if row.id > 0 for name in (row.full_name, *row.aliases)}
    _drop(connection, month, names)
    return _as_taken_in(by_id, names_taken_in(connection, month))


def _as_taken_in(by_id: dict[int, Repository], names: dict[int, str]) -> tuple[Repository, ...]:
    """Return the rows of *by_id* under the *names* of their windows, but for a name that another one has now."""
    in_use = {row.full_name.lower(): id_ for id_, row in by_id.items()}
    kept = {id_: name for id_, name in names.items() if in_use.get(name.lower(), id_) == id_}
    return tuple(
        row if kept.get(id_, row.full_name) == row.full_name else _called(row, kept[id_]) for id_, row in by_id.items()
    )


def _called(repository: Repository, name: str, *others: Repository) -> Repository:
    """Return *repository* as *name*; its other names, and those of *others*, are aliases."""
    names = {each.lower(): each for row in (*others, repository) for each in (*row.aliases, row.full_name)}
    names.pop(name.lower(), None)
    return repository.model_copy(update={"full_name": name, "aliases": tuple(sorted(names.values(), key=str.lower))})


def _known(connection: Connection) -> dict[str, tuple[int, str]]:
    """Id and node id by name in lower case, as the newest month has them; a name in use beats a former one."""
    columns = REPOSITORIES.table.c
    statement = select(columns.full_name, columns.aliases, columns.id, columns.node_id).where(columns.id > 0)
    rows = connection.execute(statement.order_by(columns.month)).all()
    former = {alias.lower(): (row.id, row.node_id) for row in rows for alias in row.aliases}
    return former | {row.full_name.lower(): (row.id, row.node_id) for row in rows}


def _adopt(repository: Repository, stored: dict[str, tuple[int, str]]) -> Repository:
    if repository.id > 0 or repository.full_name.lower() not in stored:
        return repository
    row, node_id = stored[repository.full_name.lower()]
    return repository.model_copy(update={"id": row, "node_id": repository.node_id or node_id})


def _drop(connection: Connection, month: str, stand_ins: set[int]) -> None:
    counts = INTAKE_COUNTS.table
    held = select(counts.c.repository_id, counts.c.repository).where(
        counts.c.month == month, counts.c.repository_id.in_(stand_ins)
    )
    for repository_id, name in connection.execute(held).all():
        empty = IntakeCount(month=month, repository_id=repository_id, repository=name, reported=0, stored=0)
        replace_window(connection, empty, ())
        connection.execute(delete(counts).where(counts.c.month == month, counts.c.repository_id == repository_id))
