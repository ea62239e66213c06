"""Find a pull request, or the story of an item, by the name that people use, in any month."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Text, cast, func, or_, select
from sqlalchemy.dialects.postgresql import JSONB

from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.items import LedgerEntry
from formulacode_dagster.models.pull_request import Change, MergedPullRequest

from .artifacts import CHANGES, MERGED_PULL_REQUESTS
from .blobs import get_blob
from .ledger import story
from .tables import REPOSITORIES


@dataclass(frozen=True)
class StoredPullRequest:
    """Stored data of a pull request: the facts always, change and patch once they were read from the mirror."""

    facts: MergedPullRequest
    change: Change | None = None
    patch: bytes | None = None


def find_pull_request(connection: Connection, repository: str, number: int) -> StoredPullRequest | None:
    """Return `repository#number` by any name of the repository, ignoring case; None if it was never taken in."""
    columns, name = MERGED_PULL_REQUESTS.table.c, repository.lower()
    ids = _ids(repository)
    statement = (
        MERGED_PULL_REQUESTS.select()
        .where(columns.number == number)
        .where(or_(func.lower(columns.repository) == name, columns.repository_id.in_(ids)))
        .order_by(columns.month.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        return None
    facts = MERGED_PULL_REQUESTS.from_row(dict(row))
    key = (facts.repository_id, facts.number)
    change = CHANGES.read_keys(connection, facts.month, [key]).get(key)
    return StoredPullRequest(facts, change, get_blob(connection, change.patch_sha256) if change else None)


def repository_id(connection: Connection, repository: str) -> int | None:
    """The id of *repository* by any name it was tracked under; None when it never was."""
    newest = _ids(repository).order_by(REPOSITORIES.c.month.desc()).limit(1)
    found: int | None = connection.execute(newest).scalar_one_or_none()
    return found


def story_of(connection: Connection, name: ItemName) -> list[LedgerEntry]:
    """Return `ledger.story` of the items that *name* means, ignoring case.

    Without any, those whose repository had that name once, or got it after their month had taken it in.
    """
    same = func.lower(REPOSITORIES.c.full_name) == name.repository.lower()
    for condition in (same, REPOSITORIES.c.id.in_(_ids(name.repository))):
        spelled = connection.execute(select(REPOSITORIES.c.full_name).where(condition).distinct()).scalars()
        items = {item_key(repository, name.number) for repository in (name.repository, *spelled)}
        entries = [entry for item in sorted(items) for entry in story(connection, item)]
        if entries:
            return sorted(entries, key=lambda entry: entry.month)
    return []


def _ids(repository: str) -> Select[Any]:
    named = func.lower(REPOSITORIES.c.full_name) == repository.lower()
    aliases = cast(func.lower(cast(REPOSITORIES.c.aliases, Text)), JSONB)
    return select(REPOSITORIES.c.id).where(or_(named, aliases.contains([repository.lower()])))
