from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import (
    CandidateSource,
    DashboardCandidate,
    IntakeCount,
    LinkedIssue,
    MergedPullRequest,
)
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import (
    CHANGES,
    CLASSIFICATIONS,
    DASHBOARD_CANDIDATES,
    INTAKE_COUNTS,
    MERGED_PULL_REQUESTS,
)
from formulacode_dagster.operating.store.checksums import digest_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.operating.store.windows import (
    checksum_of_month,
    enter_candidates,
    replace_window,
    save_windows,
)
from tests.records import make_change, make_classification, make_merged

MONTH, OTHER = "2026-02", "2026-01"
MOMENT = datetime(2026, 2, 3, 12, tzinfo=UTC)


def merged(number: int, *, month: str = MONTH, repository_id: int = 7, **fields: Any) -> MergedPullRequest:
    issue = LinkedIssue(repository="a/b", number=1, title="Slow", created_at=MOMENT)
    plain: dict[str, object] = {
        "repository": "a/b",
        "title": "Cache",
        "body": "text " * 1000,
        "merged_at": MOMENT,
        "linked_issues": (issue,),
        **fields,
    }
    return make_merged(month=month, repository_id=repository_id, number=number, **plain)


def counted(reported: int, *, month: str = MONTH, repository_id: int = 7) -> IntakeCount:
    return IntakeCount(month=month, repository_id=repository_id, repository="a/b", reported=reported, stored=reported)


def take_in(database: Database, rows: Iterable[MergedPullRequest], month: str = MONTH) -> IntakeCount:
    given = list(rows)
    with database.transaction() as connection:
        return replace_window(connection, counted(len(given), month=month), given)


def landed(database: Database, *numbers: int, month: str = MONTH) -> None:
    """Give pull requests their change and the ledger entry of `pull_requests`, as the stage does."""
    patch = b"diff"
    changes = [make_change(patch, month=month, repository_id=7, number=number) for number in numbers]
    entries = [
        LedgerEntry(stage=stage, month=month, item=f"a/b#{number}", state=ItemState.DONE)
        for number in numbers
        for stage in (Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS)
    ]
    with database.transaction() as connection:
        save_changes(connection, [(change, patch) for change in changes])
        ledger.record(connection, entries)


def standing(database: Database, month: str = MONTH) -> tuple[list[int], list[int], list[str]]:
    """Numbers of the facts, of the changes, and items that `pull_requests` ended as done."""
    with database.transaction() as connection:
        return (
            [row.number for row in MERGED_PULL_REQUESTS.read(connection, month)],
            [row.number for row in CHANGES.read(connection, month)],
            ledger.items_in_state(connection, month, Stage.PULL_REQUESTS, ItemState.DONE),
        )


def test_a_window_says_what_was_added_changed_and_removed(database: Database) -> None:
    first = take_in(database, [merged(1), merged(2), merged(3)])
    assert (first.stored, first.added, first.changed, first.removed) == (3, 3, 0, 0)
    second = take_in(database, [merged(2), merged(3, title="Cache more"), merged(4)])
    assert (second.stored, second.added, second.changed, second.removed) == (3, 1, 1, 1)
    with database.transaction() as connection:
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(2), merged(3, title="Cache more"), merged(4)]
        assert INTAKE_COUNTS.read(connection, MONTH) == [second]


def test_whatever_github_tells_anew_is_a_change(database: Database) -> None:
    issue = LinkedIssue(repository="a/b", number=1, title="Slow, really", created_at=MOMENT)
    news: list[dict[str, Any]] = [
        {"merged_at": MOMENT + timedelta(microseconds=1)},
        {"base_ref": "dev"},
        {"title": "Cache it"},
        {"body": "text"},
        {"labels": ("fast",)},
        {"linked_issues": (issue,)},
        {"linked_issues": ()},
        {"repository": "a/c"},
        {"author": "ghost"},
        {"commit_count": 2},
    ]
    before = take_in(database, [merged(1)])
    for fields in news:
        after = take_in(database, [merged(1, **fields)])
        assert (after.added, after.changed, after.removed) == (0, 1, 0), fields
        assert after.checksum != before.checksum
        assert take_in(database, [merged(1)]).checksum == before.checksum


def test_rows_that_did_not_change_are_not_written(database: Database) -> None:
    rows = [merged(number) for number in range(1, 301)]
    versions = select(MERGED_PULL_REQUESTS.table.c.number, text("xmin::text"))
    sent: list[str] = []
    with database.transaction() as connection:
        replace_window(connection, counted(300), rows)
    with database.transaction() as connection:
        before = connection.execute(versions).all()
    with database.transaction() as connection:
        event.listen(connection, "before_cursor_execute", lambda *told: sent.append(told[2]))
        again = replace_window(connection, counted(300), rows)
        assert set(connection.execute(versions).all()) == set(before)
    assert (again.added, again.changed, again.removed) == (0, 0, 0)
    assert not any("merged_pull_requests" in request for request in sent if not request.startswith("SELECT"))
    assert not any("body" in request for request in sent)


def test_the_checksum_depends_on_the_rows_alone(database: Database) -> None:
    rows = [merged(number) for number in (1, 2, 10)]
    eastern = timezone(timedelta(hours=-5))
    elsewhere = [row.model_copy(update={"merged_at": row.merged_at.astimezone(eastern)}) for row in reversed(rows)]
    first = take_in(database, rows)
    assert take_in(database, []).checksum != first.checksum
    assert take_in(database, elsewhere).checksum == first.checksum
    with database.transaction() as connection:
        connection.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        for stored in MERGED_PULL_REQUESTS.read(connection, MONTH):
            assert digest_of(stored) == digest_of(merged(stored.number))


def test_text_that_had_to_be_cleaned_is_no_change_the_next_time(database: Database) -> None:
    issue = LinkedIssue(repository="a/b", number=1, title="\ud800", created_at=MOMENT)
    hostile = merged(1, title="a\x00b", labels=("\udcff",), linked_issues=(issue,))
    first = take_in(database, [hostile])
    again = take_in(database, [hostile])
    assert (again.changed, again.checksum) == (0, first.checksum)
    with database.transaction() as connection:
        cleaned = MERGED_PULL_REQUESTS.read(connection, MONTH)
    assert take_in(database, cleaned).changed == 0


def test_the_checksum_of_a_month_is_over_its_windows(database: Database) -> None:
    def window(repository_id: int, *numbers: int) -> MergedWindow:
        rows = tuple(merged(number, repository_id=repository_id) for number in numbers)
        return MergedWindow(rows, counted(len(rows), repository_id=repository_id))

    windows = [window(8, 1), window(7, 1, 2), window(9)]
    with database.transaction() as connection:
        empty = checksum_of_month(connection, MONTH)
        taken = save_windows(connection, windows)
        first = checksum_of_month(connection, MONTH)
        save_windows(connection, windows[::-1])
        assert checksum_of_month(connection, MONTH) == first != empty
        save_windows(connection, [window(8)])
        assert checksum_of_month(connection, MONTH) != first
    assert [count.repository_id for count in taken] == [7, 8, 9]


def test_of_two_windows_of_a_repository_the_last_one_stays(database: Database) -> None:
    windows = [MergedWindow((merged(number),), counted(1)) for number in (1, 2)]
    with database.transaction() as connection:
        (taken,) = save_windows(connection, windows)
    assert taken.stored == 1
    assert standing(database)[0] == [2]


def test_a_pull_request_found_in_another_month_is_stored_there_alone(database: Database) -> None:
    take_in(database, [merged(number, month=OTHER) for number in (1, 2, 3)], OTHER)
    landed(database, 1, 2, 3, month=OTHER)
    moved = take_in(database, [merged(2), merged(4)])
    assert (moved.stored, moved.added, moved.changed, moved.removed) == (2, 1, 1, 0)
    assert standing(database) == ([2, 4], [], [])
    # facts, change and entry go together; the results of later stages stay
    assert standing(database, OTHER) == ([1, 3], [1, 3], ["a/b#1", "a/b#3"])
    with database.transaction() as connection:
        assert "a/b#2" in ledger.items_in_state(connection, OTHER, Stage.CLASSIFICATIONS, ItemState.DONE)
        (left,) = INTAKE_COUNTS.read(connection, OTHER)
    assert (left.reported, left.stored, left.removed) == (2, 2, 1)
    again = take_in(database, [merged(number, month=OTHER) for number in (1, 3)], OTHER)
    assert (again.added, again.changed, again.removed, again.checksum) == (0, 0, 0, left.checksum)


def test_the_same_number_of_another_repository_stays_where_it_is(database: Database) -> None:
    with database.transaction() as connection:
        stranger = merged(2, month=OTHER, repository_id=8)
        replace_window(connection, counted(1, month=OTHER, repository_id=8), [stranger])
    assert take_in(database, [merged(2)]).changed == 0
    assert standing(database, OTHER)[0] == [2]


def test_a_pull_request_that_left_takes_its_change_along(database: Database) -> None:
    take_in(database, [merged(1), merged(2)])
    landed(database, 1, 2)
    assert take_in(database, [merged(1)]).removed == 1
    assert standing(database) == ([1], [1], ["a/b#1"])


def test_new_commits_are_never_read_beside_the_old_change(database: Database) -> None:
    take_in(database, [merged(1), merged(2), merged(3)])
    landed(database, 1, 2, 3)
    take_in(database, [merged(1, merge_commit_sha="e" * 40), merged(2, title="A new title"), merged(3)])
    assert standing(database) == ([1, 2, 3], [2, 3], ["a/b#2", "a/b#3"])


def test_what_later_stages_made_of_a_pull_request_that_left_stays(database: Database) -> None:
    verdict = make_classification(month=MONTH)
    take_in(database, [merged(1)])
    with database.transaction() as connection:
        CLASSIFICATIONS.save(connection, [verdict])
    take_in(database, [])
    with database.transaction() as connection:
        assert CLASSIFICATIONS.read(connection, MONTH) == [verdict]


def test_a_row_of_another_window_is_refused(database: Database) -> None:
    take_in(database, [merged(1)])
    for stranger in (merged(2, month=OTHER), merged(2, repository_id=8)):
        with pytest.raises(ValueError, match=r"a/b#2 do not belong to 2026-02 of a/b"):
            take_in(database, [merged(1), stranger])
    assert standing(database)[0] == [1]


def test_a_window_that_cannot_be_written_leaves_the_old_one_whole(database: Database) -> None:
    old = take_in(database, [merged(number) for number in range(1, 301)])
    # a pull request whose column refuses it, after the others were dropped and the month before was corrected
    broken = merged(300).model_copy(update={"commit_count": None})
    with pytest.raises(IntegrityError):
        take_in(database, [*(merged(number, title="New") for number in range(5, 300)), broken])
    with database.transaction() as connection:
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(number) for number in range(1, 301)]
        assert INTAKE_COUNTS.read(connection, MONTH) == [old]


def test_parallel_months_of_the_same_repositories_never_lock_crosswise(database: Database) -> None:
    failures: list[BaseException] = []

    def take(month: str, order: int) -> None:
        windows = [
            MergedWindow(
                (merged(1, month=month, repository_id=repository_id),),
                counted(1, month=month, repository_id=repository_id),
            )
            for repository_id in (7, 8, 9)[::order]
        ]
        try:
            for _ in range(6):
                with database.transaction() as connection:
                    save_windows(connection, windows)
        except OutsideSystemError as error:
            failures.append(error)

    months = [threading.Thread(target=take, args=arguments) for arguments in ((MONTH, 1), (OTHER, -1))]
    for month in months:
        month.start()
    for month in months:
        month.join()
    assert failures == []
    with database.transaction() as connection:
        rows = connection.execute(select(MERGED_PULL_REQUESTS.table.c.repository_id)).scalars().all()
        counts = INTAKE_COUNTS.read(connection, MONTH) + INTAKE_COUNTS.read(connection, OTHER)
    assert sorted(rows) == [7, 8, 9]
    assert sum(count.stored for count in counts) == 3


def candidate(number: int, sha: str) -> DashboardCandidate:
    return DashboardCandidate(
        month=MONTH, repository_id=7, number=number, repository="a/b", sha=sha, title="Cache", body="",
        committed_at=MOMENT, dashboard="board", series="published", method="seeded", before_sha="0" * 40,
        commits=1, improved=1, regressed=0, median_ratio=0.5,
    )  # fmt: skip


def facts_of(database: Database) -> dict[int, str]:
    with database.transaction() as connection:
        return {row.number: str(row.source) for row in MERGED_PULL_REQUESTS.read(connection, MONTH)}


def test_a_windows_pull_request_is_no_dashboard_candidate(database: Database) -> None:
    with database.transaction() as connection:
        rows = [candidate(1, "1" * 40), candidate(1_000_000_002, "2" * 40), candidate(3, "3" * 40)]
        DASHBOARD_CANDIDATES.save(connection, rows)
        assert enter_candidates(connection, MONTH, dry_run=True) == ["a/b#1", "a/b#3", "a/b#1000000002"]
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == []
        assert enter_candidates(connection, MONTH) == ["a/b#1", "a/b#3", "a/b#1000000002"]
    landed(database, 1)
    count = take_in(database, [merged(1, merge_commit_sha="f" * 40), merged(2, merge_commit_sha="2" * 40)])
    assert (count.stored, count.added, count.removed) == (2, 2, 0)
    assert facts_of(database) == {1: "pull_request", 2: "pull_request", 3: "dashboard"}
    with database.transaction() as connection:
        # its patch was that of another commit
        assert CHANGES.read(connection, MONTH) == []
        assert enter_candidates(connection, MONTH) == ["a/b#3"]
    assert take_in(database, [merged(2, merge_commit_sha="2" * 40)]).removed == 1
    assert facts_of(database) == {2: "pull_request", 3: "dashboard"}
    with database.transaction() as connection:
        DASHBOARD_CANDIDATES.replace_month(connection, MONTH, [])
        assert enter_candidates(connection, MONTH) == []
    assert facts_of(database) == {2: "pull_request"}


def test_a_field_that_came_later_leaves_the_digests_of_before(database: Database) -> None:
    plain = make_merged()
    # as it was when no row had a source
    assert digest_of(plain) == "15ab3e4e5ac87a34c2cce85654602f64d0c33f52073dd457e3adfde9e6f76c4d"
    assert digest_of(plain.model_copy(update={"source": CandidateSource.DASHBOARD})) != digest_of(plain)
