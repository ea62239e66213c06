"""Pull requests of a month: GitHub's facts joined with the change behind them. Patches are read one at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, and_, cast, select, true

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.pull_request import CandidateSource, Change, MergedPullRequest, PullRequest

from .artifacts import CHANGES, MERGED_PULL_REQUESTS, ROWS_AT_ONCE, Artifact, M, PullRequestKey
from .blobs import get_blob, put_blobs
from .tables import LEDGER

_FACTS = MERGED_PULL_REQUESTS.table
_CHANGES = CHANGES.table


@dataclass(frozen=True, slots=True)
class MergedName:
    """A merged pull request without its texts: identity, merge commit, and the digest of the stored row."""

    repository_id: int
    repository: str
    number: int
    merged_at: datetime
    head_sha: str
    merge_commit_sha: str
    commit_count: int
    digest: str

    @property
    def key(self) -> PullRequestKey:
        """(repository id, number)."""
        return self.repository_id, self.number

    @property
    def item(self) -> str:
        """`owner/repo#number`."""
        return item_key(self.repository, self.number)


def save_changes(connection: Connection, changes: Sequence[tuple[Change, bytes]]) -> None:
    """Keep changes and, apart from them, their patches."""
    put_blobs(connection, "patch", [patch for _, patch in changes])
    CHANGES.save(connection, [change for change, _ in changes])


def patch_of(connection: Connection, pull_request: PullRequest) -> bytes:
    """The patch, decompressed."""
    return get_blob(connection, pull_request.change.patch_sha256)


def merged_names(connection: Connection, month: str) -> list[MergedName]:
    """Every merged pull request of *month* by name, ordered by repository and number: 20,000 of them take 20 MB."""
    statement = (
        select(*(_FACTS.c[name] for name in MergedName.__slots__))
        .where(_FACTS.c.month == month)
        .order_by(_FACTS.c.repository_id, _FACTS.c.number)
    )
    rows = connection.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE})
    return [MergedName(*row) for row in rows]


def items_by_key(
    connection: Connection, month: str, source: CandidateSource | None = None
) -> dict[PullRequestKey, str]:
    """`owner/repo#number` of every pull request of *month*, by (repository id, number); of one *source* if given."""
    statement = select(_FACTS.c.repository_id, _FACTS.c.number, _FACTS.c.repository).where(_FACTS.c.month == month)
    if source is not None:
        statement = statement.where(_FACTS.c.source == source.value)
    return {(row[0], row[1]): item_key(row[2], row[1]) for row in connection.execute(statement)}


def known_among(connection: Connection, keys: Collection[PullRequestKey]) -> set[PullRequestKey]:
    """Return those of *keys* that are merged pull requests of any month."""
    if not keys:
        return set()
    ids, numbers = ({key[part] for key in keys} for part in (0, 1))
    among = and_(_FACTS.c.repository_id.in_(ids), _FACTS.c.number.in_(numbers))
    rows = connection.execute(select(_FACTS.c.repository_id, _FACTS.c.number).where(among))
    return {(row[0], row[1]) for row in rows} & set(keys)


def merged_of(connection: Connection, month: str, repository_id: int) -> list[MergedPullRequest]:
    """The merged pull requests of one repository's month, by number; no candidates of dashboards."""
    statement = (
        MERGED_PULL_REQUESTS.select()
        .where(_FACTS.c.month == month, _FACTS.c.repository_id == repository_id)
        .where(_FACTS.c.source == CandidateSource.PULL_REQUEST.value)
        .order_by(_FACTS.c.number)
    )
    return [MERGED_PULL_REQUESTS.from_row(dict(row)) for row in connection.execute(statement).mappings()]


def merged_one(connection: Connection, month: str, key: PullRequestKey) -> MergedPullRequest:
    """The facts of one pull request; FormulaCodeError when it is not part of *month* any more."""
    rows = MERGED_PULL_REQUESTS.read_keys(connection, month, [key])
    if key not in rows:
        raise _not_there(month, f"#{key[1]} of repository {key[0]}", "facts")
    return rows[key]


def pull_request_of(connection: Connection, month: str, key: PullRequestKey) -> PullRequest:
    """One pull request, facts and change; FormulaCodeError when either is not there any more."""
    facts = merged_one(connection, month, key)
    rows = CHANGES.read_keys(connection, month, [key])
    if key not in rows:
        raise _not_there(month, facts.item, "change")
    return PullRequest(facts=facts, change=rows[key])


def done_items(connection: Connection, month: str, stage: Stage) -> dict[PullRequestKey, str]:
    """Return `owner/repo#number` of the items that *stage* ended as done, by key, ordered by repository and number."""
    statement = select(_FACTS.c.repository_id, _FACTS.c.number, _FACTS.c.repository)
    rows = connection.execute(_done(statement, month, stage))
    return {(row[0], row[1]): item_key(row[2], row[1]) for row in rows}


def iterate_done(connection: Connection, month: str, stage: Stage) -> Iterator[PullRequest]:
    """Iterate over the pull requests of *month* that *stage* ended as done, by repository and number, few in memory.

    Other statements may run on *connection* meanwhile. FormulaCodeError when one has lost its change.
    """
    same = and_(*(_CHANGES.c[key.name] == _FACTS.c[key.name] for key in _CHANGES.primary_key))
    statement = select(*_labelled(MERGED_PULL_REQUESTS), *_labelled(CHANGES)).outerjoin(_CHANGES, same)
    done = _done(statement, month, stage)
    with connection.execute(done, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
        for row in rows.mappings():
            facts = MERGED_PULL_REQUESTS.from_row(_of(MERGED_PULL_REQUESTS, row))
            change = _of(CHANGES, row)
            if change["number"] is None:
                raise _not_there(month, facts.item, "change")
            yield PullRequest(facts=facts, change=CHANGES.from_row(change))


def done_in(connection: Connection, month: str, stage: Stage) -> list[PullRequest]:
    """Return all of `iterate_done`: for stages after the classification, which keeps one in a hundred."""
    return list(iterate_done(connection, month, stage))


def _done(statement: Select[Any], month: str, stage: Stage) -> Select[Any]:
    entry = select(LEDGER.c.item).where(
        LEDGER.c.month == month,
        LEDGER.c.stage == stage.value,
        LEDGER.c.item == _item(),
        LEDGER.c.state == ItemState.DONE.value,
    )
    # one look-up per row: a month that was just written has no statistics, and the planner assumed one row for a join
    done = entry.limit(1).lateral("done")
    return statement.join(done, true()).where(_FACTS.c.month == month).order_by(_FACTS.c.repository_id, _FACTS.c.number)


def _item() -> ColumnElement[str]:
    """Return the SQL expression of `item_key`."""
    return _FACTS.c.repository.concat("#").concat(cast(_FACTS.c.number, Text))


def _labelled(artifact: Artifact[M]) -> list[ColumnElement[Any]]:
    return [column.label(f"{artifact.table.name}_{column.name}") for column in artifact.columns]


def _of(artifact: Artifact[M], row: Any) -> dict[str, Any]:
    return {column.name: row[f"{artifact.table.name}_{column.name}"] for column in artifact.columns}


def _not_there(month: str, item: str, what: str) -> FormulaCodeError:
    return FormulaCodeError(
        f"the {what} of {item} is not there in {month}", remedy=f"Materialize pull_requests of {month} again"
    )
