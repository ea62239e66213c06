from __future__ import annotations

import json

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import Change, ChangedFile, IntakeCount, MergedPullRequest, PullRequest
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, INTAKE_COUNTS, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.checksums import digest_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import (
    done_in,
    done_items,
    items_by_key,
    iterate_done,
    merged_names,
    merged_of,
    merged_one,
    patch_of,
    pull_request_of,
    save_changes,
)
from formulacode_dagster.operating.store.tables import BLOBS
from formulacode_dagster.operating.store.windows import replace_window
from tests.records import make_change, make_merged

MONTH = "2026-02"
PATCH = "diff --git a/über.py b/über.py\n+    return cached\n".encode() * 100 + b"\xff\x00"


def merged(number: int, *, repository_id: int = 7, repository: str = "a/b", month: str = MONTH) -> MergedPullRequest:
    return make_merged(month=month, repository_id=repository_id, repository=repository, number=number)


def changed(number: int, patch: bytes = PATCH, *, repository_id: int = 7) -> tuple[Change, bytes]:
    files = (ChangedFile(path="über.py", status="M", additions=100),)
    return make_change(patch, month=MONTH, repository_id=repository_id, number=number, files=files), patch


def counted(stored: int, *, repository_id: int = 7, repository: str = "a/b") -> IntakeCount:
    return IntakeCount(month=MONTH, repository_id=repository_id, repository=repository, reported=stored, stored=stored)


def done(item: str, stage: Stage = Stage.PULL_REQUESTS, state: ItemState = ItemState.DONE) -> LedgerEntry:
    return LedgerEntry(stage=stage, month=MONTH, item=item, state=state)


def test_patches_are_compressed_and_apart_from_the_rows(database: Database) -> None:
    with database.transaction() as connection:
        save_changes(connection, [changed(1), changed(2)])
        rows = connection.execute(text("SELECT to_jsonb(c) FROM changes c")).scalars().all()
        (blob,) = connection.execute(select(BLOBS)).mappings()
        pull_request = PullRequest(facts=merged(1), change=CHANGES.read(connection, MONTH)[0])
        assert patch_of(connection, pull_request) == PATCH
    assert blob["kind"] == "patch"
    assert len(blob["content"]) < len(PATCH) / 10
    assert all("cached" not in json.dumps(row) and len(json.dumps(row)) < 1000 for row in rows)


def test_a_change_without_its_patch_cannot_be_kept(database: Database) -> None:
    with pytest.raises(IntegrityError), database.transaction() as connection:
        CHANGES.save(connection, [changed(1)[0]])


def test_a_patch_that_was_damaged_is_never_handed_out(database: Database) -> None:
    with database.transaction() as connection:
        save_changes(connection, [changed(1)])
        connection.execute(BLOBS.update().values(content=b"rot"))
        with pytest.raises(FormulaCodeError, match="damaged"):
            patch_of(connection, PullRequest(facts=merged(1), change=changed(1)[0]))


def test_a_window_is_replaced_whole_and_the_other_repositories_keep_theirs(database: Database) -> None:
    other = merged(1, repository_id=8, repository="c/d")
    with database.transaction() as connection:
        replace_window(connection, counted(2), [merged(1), merged(2)])
        replace_window(connection, counted(1, repository_id=8, repository="c/d"), [other])
        MERGED_PULL_REQUESTS.save(connection, [merged(1, month="2026-01")])
        replace_window(connection, counted(1), [merged(3)])
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(3), other]
        assert MERGED_PULL_REQUESTS.read(connection, "2026-01") == [merged(1, month="2026-01")]
        assert [row.stored for row in INTAKE_COUNTS.read(connection, MONTH)] == [1, 1]


def test_a_window_of_nothing_is_a_window_too(database: Database) -> None:
    with database.transaction() as connection:
        replace_window(connection, counted(1), [merged(1)])
        replace_window(connection, counted(0), [])
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == []
        assert [row.stored for row in INTAKE_COUNTS.read(connection, MONTH)] == [0]


def test_a_window_that_cannot_be_written_leaves_the_old_one(database: Database) -> None:
    with database.transaction() as connection:
        replace_window(connection, counted(1), [merged(1)])
    # GitHub's numbers fit; one that does not is refused by the column, after the delete
    too_big = merged(2).model_copy(update={"commit_count": None})
    with pytest.raises(IntegrityError), database.transaction() as connection:
        replace_window(connection, counted(2), [merged(3), too_big])
    with database.transaction() as connection:
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(1)]
        assert [row.stored for row in INTAKE_COUNTS.read(connection, MONTH)] == [1]


def test_what_a_stage_ended_as_done_is_handed_to_the_next_with_its_change(database: Database) -> None:
    with database.transaction() as connection:
        replace_window(connection, counted(4), [merged(number) for number in (1, 2, 3, 4)])
        save_changes(connection, [changed(number) for number in (1, 2, 4)])
        ledger.record(
            connection,
            [
                done("a/b#2"),
                done("a/b#1"),
                done("a/b#3", state=ItemState.FAILED),
                done("a/b#4", Stage.CLASSIFICATIONS),
                done("a/b"),
            ],
        )
        found = done_in(connection, MONTH, Stage.PULL_REQUESTS)
        assert [pull.item for pull in done_in(connection, MONTH, Stage.CLASSIFICATIONS)] == ["a/b#4"]
        assert done_in(connection, "2026-01", Stage.PULL_REQUESTS) == []
    assert found == [PullRequest(facts=merged(number), change=changed(number)[0]) for number in (1, 2)]


def test_items_are_named_by_their_key(database: Database) -> None:
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [merged(1), merged(1, repository_id=8, repository="c/d")])
        assert items_by_key(connection, MONTH) == {(7, 1): "a/b#1", (8, 1): "c/d#1"}
        assert items_by_key(connection, "2026-01") == {}


def test_what_is_done_is_named_without_reading_it(database: Database) -> None:
    with database.transaction() as connection:
        rows = [merged(number) for number in (10, 2, 3)]
        replace_window(connection, counted(3), rows)
        replace_window(
            connection, counted(1, repository_id=5, repository="c/d"), [merged(1, repository_id=5, repository="c/d")]
        )
        ledger.record(connection, [done("a/b#10"), done("a/b#2"), done("c/d#1"), done("a/b"), done("a/b#99")])
        found = done_items(connection, MONTH, Stage.PULL_REQUESTS)
        assert done_items(connection, MONTH, Stage.IMAGES) == {}
    assert list(found.items()) == [((5, 1), "c/d#1"), ((7, 2), "a/b#2"), ((7, 10), "a/b#10")]


def test_a_month_is_named_without_its_texts(database: Database) -> None:
    with database.transaction() as connection:
        replace_window(connection, counted(2), [merged(2), merged(1)])
        names = merged_names(connection, MONTH)
        whole = MERGED_PULL_REQUESTS.read(connection, MONTH)
        assert merged_names(connection, "2026-01") == []
    assert [(name.key, name.item, name.merged_at) for name in names] == [
        ((pull.repository_id, pull.number), pull.item, pull.merged_at) for pull in whole
    ]
    assert [name.digest for name in names] == [digest_of(name) for name in whole]


def test_one_repository_and_one_pull_request_can_be_read_alone(database: Database) -> None:
    stranger = merged(1, repository_id=8, repository="c/d")
    with database.transaction() as connection:
        replace_window(connection, counted(2), [merged(2), merged(1)])
        replace_window(connection, counted(1, repository_id=8, repository="c/d"), [stranger])
        save_changes(connection, [changed(2)])
        assert merged_of(connection, MONTH, 7) == [merged(1), merged(2)]
        assert merged_of(connection, MONTH, 9) == []
        assert merged_one(connection, MONTH, (8, 1)) == stranger
        assert pull_request_of(connection, MONTH, (7, 2)) == PullRequest(facts=merged(2), change=changed(2)[0])
        with pytest.raises(FormulaCodeError, match="the facts of #3 of repository 7"):
            merged_one(connection, MONTH, (7, 3))
        with pytest.raises(FormulaCodeError, match=r"the change of a/b#1 is not there in 2026-02\. Materialize"):
            pull_request_of(connection, MONTH, (7, 1))


@pytest.mark.slow
def test_what_is_done_can_be_gone_through_while_its_patches_are_read(database: Database) -> None:
    numbers = range(1, 501)
    with database.transaction() as connection:
        replace_window(connection, counted(500), [merged(number) for number in numbers])
        save_changes(connection, [changed(number, b"patch %d" % number) for number in numbers])
        ledger.record(connection, [done(f"a/b#{number}") for number in numbers])
    with database.transaction() as connection:
        found = iterate_done(connection, MONTH, Stage.PULL_REQUESTS)
        assert [patch_of(connection, key) for key in found] == [b"patch %d" % number for number in numbers]
        # a half-read one blocks no other
        next(iterate_done(connection, MONTH, Stage.PULL_REQUESTS))
        assert len(done_items(connection, MONTH, Stage.PULL_REQUESTS)) == 500


def test_a_pull_request_that_lost_its_change_is_named_and_never_left_out(database: Database) -> None:
    with database.transaction() as connection:
        replace_window(connection, counted(2), [merged(1), merged(2)])
        save_changes(connection, [changed(1)])
        ledger.record(connection, [done("a/b#1"), done("a/b#2")])
        with pytest.raises(FormulaCodeError, match="the change of a/b#2 is not there"):
            done_in(connection, MONTH, Stage.PULL_REQUESTS)
