"""Windows: one repository's month of merged pull requests, replaced whole and compared with the intake before.

Facts, change and the ledger entry of intake go together: when a pull request leaves a month, or its commits change, all
three are removed, so no later stage reads new facts with an old patch. Rows and entries of later stages stay; each is
read through the facts of its month, and updated or dropped when its stage is materialized again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, any_, cast, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import CollectionAggregate

from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.pull_request import CandidateSource, IntakeCount, MergedPullRequest

from .artifacts import CHANGES, DASHBOARD_CANDIDATES, INTAKE_COUNTS, MERGED_PULL_REQUESTS
from .checksums import checksum_of, digest_of
from .ledger import forget

_LANDING = ("base_ref", "head_sha", "merge_commit_sha", "commit_count", "changed_files")
"""Fields from which the change of a pull request is read."""
_LOCK = 0x77696E64
"""Space of the advisory locks on repositories, apart from those on months."""
_FACTS = MERGED_PULL_REQUESTS.table.c
_IS_MERGE = _FACTS.source == CandidateSource.PULL_REQUEST.value
"""Windows contain no other candidates."""


@dataclass(frozen=True)
class _Stored:
    number: int
    item: str
    digest: str
    landing: tuple[object, ...]


def save_windows(connection: Connection, windows: Sequence[MergedWindow]) -> list[IntakeCount]:
    """Call `replace_window` for several repositories, in the order of their ids, and write in one batch.

    Of two windows of the same repository the last one stays.
    """
    distinct = {window.count.repository_id: window for window in windows}
    # in this order, parallel months never lock crosswise
    compared = [_compare(connection, distinct[key].count, distinct[key].pull_requests) for key in sorted(distinct)]
    digests = {(row.repository_id, row.number): digest for _, rows in compared for row, digest in rows}
    MERGED_PULL_REQUESTS.add(
        connection,
        [row for _, rows in compared for row, _ in rows],
        lambda facts: {"digest": digests[facts.repository_id, facts.number]},
    )
    INTAKE_COUNTS.save(connection, [count for count, _ in compared])
    return [count for count, _ in compared]


def replace_window(
    connection: Connection, count: IntakeCount, pull_requests: Sequence[MergedPullRequest]
) -> IntakeCount:
    """Replace one repository's month by *pull_requests*, in the caller's transaction.

    Returns *count* with `stored`, `checksum`, and the rows added, changed and removed since the previous intake.
    Unchanged rows are not written. A row of another month moves here, which counts as changed here and as removed
    there. Raises ValueError for a pull request of another repository or month.
    """
    return save_windows(connection, [MergedWindow(tuple(pull_requests), count)])[0]


def names_taken_in(connection: Connection, month: str) -> dict[int, str]:
    """Names under which *month* has windows, by repository id: its items and task ids keep them after a rename."""
    columns = INTAKE_COUNTS.table.c
    rows = connection.execute(select(columns.repository_id, columns.repository).where(columns.month == month))
    return {row.repository_id: row.repository for row in rows}


def checksum_of_month(connection: Connection, month: str) -> str:
    """SHA-256 over the checksums of the month's windows: equal for two intakes that stored the same rows."""
    columns = INTAKE_COUNTS.table.c
    rows = connection.execute(select(columns.repository_id, columns.checksum).where(columns.month == month))
    return checksum_of((row.repository_id, row.checksum) for row in rows)


def _compare(
    connection: Connection, count: IntakeCount, pull_requests: Sequence[MergedPullRequest]
) -> tuple[IntakeCount, list[tuple[MergedPullRequest, str]]]:
    """Remove rows that left the window; returns the effects, and the rows to copy in, with digests."""
    month, repository = count.month, count.repository_id
    given = {pull_request.number: pull_request for pull_request in pull_requests}
    strangers = [
        pull_request.item
        for pull_request in given.values()
        if (pull_request.month, pull_request.repository_id) != (month, repository)
    ]
    if strangers:
        raise ValueError(f"{', '.join(strangers[:5])} do not belong to {month} of {count.repository}")
    digests = {number: digest_of(pull_request) for number, pull_request in given.items()}
    connection.execute(text("SELECT pg_advisory_xact_lock(:space, :key)"), {"space": _LOCK, "key": repository % 2**31})
    _drop_candidates(connection, repository, given)
    before = _stored(connection, month, repository)
    moved = _take_from_other_months(connection, month, repository, given)
    added = given.keys() - before.keys() - moved
    changed = {number for number in given.keys() & before.keys() if digests[number] != before[number].digest}
    removed = before.keys() - given.keys()
    # changed rows are copied with the added ones: half the cost of a merge
    _drop_facts(connection, month, repository, removed | changed)
    outdated = {number for number in changed if before[number].landing != _landing(given[number])}
    _drop_changes(connection, month, repository, [before[number] for number in removed | outdated])
    taken = count.model_copy(
        update={
            "stored": len(given),
            "checksum": checksum_of(digests.items()),
            "added": len(added),
            "changed": len(changed | moved),
            "removed": len(removed),
        }
    )
    return taken, [(given[number], digests[number]) for number in sorted(added | changed | moved)]


def _landing(row: MergedPullRequest) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in _LANDING)


def _stored(connection: Connection, month: str, repository: int) -> dict[int, _Stored]:
    """Return the stored rows of a window by number, without their texts."""
    statement = select(_FACTS.number, _FACTS.repository, _FACTS.digest, *(_FACTS[name] for name in _LANDING)).where(
        _FACTS.month == month, _FACTS.repository_id == repository, _IS_MERGE
    )
    return {
        row[0]: _Stored(row[0], item_key(row[1], row[0]), row[2], tuple(row[3:]))
        for row in connection.execute(statement)
    }


def _take_from_other_months(
    connection: Connection, month: str, repository: int, given: Mapping[int, MergedPullRequest]
) -> set[int]:
    """Remove rows of *given* from other months, and correct their counts; returns the numbers that moved."""
    statement = select(_FACTS.month, _FACTS.number).where(
        _FACTS.repository_id == repository, _FACTS.month != month, _FACTS.number == _among(given), _IS_MERGE
    )
    elsewhere: dict[str, set[int]] = {}
    for other, number in connection.execute(statement):
        elsewhere.setdefault(other, set()).add(number)
    for other, numbers in elsewhere.items():
        held = _stored(connection, other, repository)
        _drop_facts(connection, other, repository, numbers)
        _drop_changes(connection, other, repository, [held[number] for number in numbers])
        kept = {number: row.digest for number, row in held.items() if number not in numbers}
        counts = INTAKE_COUNTS.table
        connection.execute(
            update(counts)
            .where(counts.c.month == other, counts.c.repository_id == repository)
            .values(
                reported=func.greatest(counts.c.reported - len(numbers), 0),
                stored=len(kept),
                removed=counts.c.removed + len(numbers),
                checksum=checksum_of(kept.items()),
            )
        )
    return {number for numbers in elsewhere.values() for number in numbers}


def enter_candidates(connection: Connection, month: str, *, dry_run: bool = False) -> list[str]:
    """Add the dashboards' candidates of *month* as rows besides those of the windows; returns their items.

    A candidate that a window contains, by number or commit, is not entered; former candidates are removed. With
    *dry_run* nothing is written.
    """
    candidates = {(row.repository_id, row.number): row.facts for row in DASHBOARD_CANDIDATES.read(connection, month)}
    repositories = any_(cast(sorted({key[0] for key in candidates}), ARRAY(BigInteger)))
    merges = connection.execute(
        select(_FACTS.repository_id, _FACTS.number, _FACTS.merge_commit_sha).where(
            _FACTS.repository_id == repositories, _IS_MERGE
        )
    ).all()
    keys, commits = {(row[0], row[1]) for row in merges}, {(row[0], row[2]) for row in merges}
    wanted = {
        key: facts
        for key, facts in candidates.items()
        if key not in keys and (key[0], facts.merge_commit_sha) not in commits
    }
    items = [facts.item for facts in wanted.values()]
    if dry_run:
        return items
    held = connection.execute(
        select(_FACTS.repository_id, _FACTS.number, _FACTS.repository, _FACTS.digest).where(
            _FACTS.month == month, ~_IS_MERGE
        )
    ).all()
    same = {
        (row[0], row[1]) for row in held if (row[0], row[1]) in wanted and row[3] == digest_of(wanted[row[0], row[1]])
    }
    for repository, number, name, _ in held:
        if (repository, number) not in same:
            _drop_facts(connection, month, repository, [number])
            _drop_changes(connection, month, repository, [_Stored(number, item_key(name, number), "", ())])
    MERGED_PULL_REQUESTS.save(connection, [facts for key, facts in wanted.items() if key not in same])
    return items


def _drop_candidates(connection: Connection, repository: int, given: Mapping[int, MergedPullRequest]) -> None:
    """Drop dashboards' candidates, of any month, that turn out to be among the pull requests *given*."""
    commits = {row.merge_commit_sha for row in given.values()}
    held = select(_FACTS.month, _FACTS.number, _FACTS.repository, _FACTS.merge_commit_sha).where(
        _FACTS.repository_id == repository, ~_IS_MERGE
    )
    for month, number, name, sha in connection.execute(held).all():
        if number in given or sha in commits:
            _drop_facts(connection, month, repository, [number])
            _drop_changes(connection, month, repository, [_Stored(number, item_key(name, number), "", ())])


def _drop_facts(connection: Connection, month: str, repository: int, numbers: Collection[int]) -> None:
    if numbers:
        connection.execute(
            delete(MERGED_PULL_REQUESTS.table).where(
                _FACTS.month == month, _FACTS.repository_id == repository, _FACTS.number == _among(numbers)
            )
        )


def _drop_changes(connection: Connection, month: str, repository: int, rows: Sequence[_Stored]) -> None:
    if rows:
        columns = CHANGES.table.c
        among = columns.number == _among(row.number for row in rows)
        connection.execute(
            delete(CHANGES.table).where(columns.month == month, columns.repository_id == repository, among)
        )
        forget(connection, month, Stage.PULL_REQUESTS, [row.item for row in rows])


def _among(numbers: Iterable[int]) -> CollectionAggregate[Any]:
    # one array, however many: Postgres takes 65,535 parameters
    return any_(cast(list(numbers), ARRAY(Integer)))
