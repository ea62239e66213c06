"""A pull request by the name a person uses, whatever month it is stored in."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, or_, select

from formulacode_dagster.models.pull_request import Change, MergedPullRequest

from .artifacts import CHANGES, MERGED_PULL_REQUESTS
from .blobs import get_blob
from .tables import REPOSITORIES


@dataclass(frozen=True)
class StoredPullRequest:
    """What the database knows: the facts always, change and patch once they were read from the mirror."""

    facts: MergedPullRequest
    change: Change | None = None
    patch: bytes | None = None


def find_pull_request(connection: Connection, repository: str, number: int) -> StoredPullRequest | None:
    """`repository#number` by any name the repository was tracked under, case aside; None when it was never taken in."""
    columns, known = MERGED_PULL_REQUESTS.table.c, REPOSITORIES.c
    name = repository.lower()
    ids = select(known.id).where(or_(func.lower(known.full_name) == name, known.aliases.contains([repository])))
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
