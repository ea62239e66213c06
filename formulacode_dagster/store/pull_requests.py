"""Pull requests of a month: GitHub's facts joined with the change behind them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.pull_request import Change, IntakeCount, MergedPullRequest, PullRequest

from .artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS
from .blobs import get_blob, put_blob
from .ledger import items_in_state


def replace_window(connection: Connection, count: IntakeCount, pull_requests: Sequence[MergedPullRequest]) -> None:
    """Make *pull_requests* all there is of one repository's month, in the caller's transaction."""
    table = MERGED_PULL_REQUESTS.table
    connection.execute(delete(table).where(table.c.month == count.month, table.c.repository_id == count.repository_id))
    MERGED_PULL_REQUESTS.save(connection, pull_requests)
    INTAKE_COUNTS.save(connection, [count])


def save_changes(connection: Connection, changes: Sequence[tuple[Change, bytes]]) -> None:
    """Keep changes and, apart from them, their patches."""
    for _, patch in changes:
        put_blob(connection, "patch", patch)
    CHANGES.save(connection, [change for change, _ in changes])


def done_in(connection: Connection, month: str, stage: Stage) -> list[PullRequest]:
    """The pull requests of *month* that *stage* ended as done, ordered by repository and number."""
    done = set(items_in_state(connection, month, stage, ItemState.DONE))
    facts = [facts for facts in MERGED_PULL_REQUESTS.read(connection, month) if facts.item in done]
    changes = CHANGES.read_keys(connection, month, [(one.repository_id, one.number) for one in facts])
    return [PullRequest(facts=one, change=changes[one.repository_id, one.number]) for one in facts]


def patch_of(connection: Connection, pull_request: PullRequest) -> bytes:
    """The patch, decompressed."""
    return get_blob(connection, pull_request.change.patch_sha256)


def items_by_key(connection: Connection, month: str) -> dict[tuple[int, int], str]:
    """`owner/repo#number` of every pull request of *month*, by (repository id, number)."""
    columns = MERGED_PULL_REQUESTS.table.c
    statement = select(columns.repository_id, columns.number, columns.repository).where(columns.month == month)
    return {(row[0], row[1]): item_key(row[2], row[1]) for row in connection.execute(statement)}
