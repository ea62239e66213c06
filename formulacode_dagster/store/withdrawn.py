"""What a month held of repositories that are not tracked in it any more."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Connection, Text, any_, cast, delete, func
from sqlalchemy.dialects.postgresql import ARRAY

from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.repository import Repository

from .artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS
from .tables import LEDGER


def withdraw(connection: Connection, month: str, repositories: Sequence[Repository]) -> int:
    """Drop the pull requests that *month* took in from *repositories*; returns how many these were.

    Facts, changes, counts and the ledger entries of intake go together, so that no later stage uses any of them, and a
    repository that is tracked again is asked for its window again. Rows of later stages stay: they are read through the
    facts only, and are found done if these come back.
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
