"""Old attempts and logs: needed ones stay at any age; the rest goes, with its logs."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from formulacode_dagster.building.housekeeping import attempts as pruning
from formulacode_dagster.building.housekeeping.attempts import PrunedAttempts, prune_attempts
from formulacode_dagster.building.synthesis.month import MOST_EARLIER
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS, RELEASES
from formulacode_dagster.operating.store.attempts import attempts_of, log_of_attempt, save_attempt
from formulacode_dagster.operating.store.blobs import get_log, put_blob, put_log
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import BLOBS, LOGS
from tests.records import make_attempt, make_merged, make_release

MONTH, KEY, ITEM = "2026-02", (7, 5), "a/b#5"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
OLD = NOW - timedelta(days=200)
HELD = {"stage": "done", "kind": ""}


def tried(database: Database, count: int = 4, *, started_at: datetime = OLD, **by_number: dict[str, object]) -> None:
    """*count* attempts at `a/b#5`; `n2={…}` are fields of the second."""
    with database.transaction() as connection:
        facts = make_merged(month=MONTH, repository_id=7, repository="a/b", number=5)
        MERGED_PULL_REQUESTS.save(connection, [facts])
        for number in range(1, count + 1):
            given = {
                "number": 5,
                "attempt": number,
                "run_id": "run",
                "started_at": started_at,
                "stage": "task",
                "kind": "build",
                "log": f"log of {number}\n" * 100,
            }
            save_attempt(connection, make_attempt(**(given | by_number.get(f"n{number}", {}))))


def ended(database: Database, state: ItemState, stage: Stage = Stage.IMAGES) -> None:
    with database.transaction() as connection:
        ledger.record(connection, [LedgerEntry(stage=stage, month=MONTH, item=ITEM, state=state, finished_at=OLD)])


def released(database: Database) -> None:
    release = make_release(released_at=OLD)
    with database.transaction() as connection:
        RELEASES.save(connection, [release])


def left(database: Database) -> list[int]:
    with database.transaction() as connection:
        return [attempt.attempt for attempt in attempts_of(connection, MONTH, KEY)]


def blobs(database: Database) -> int:
    with database.transaction() as connection:
        return int(connection.execute(select(func.count()).select_from(BLOBS)).scalar_one())


def prune(database: Database, days: int = 180, *, dry_run: bool = False) -> PrunedAttempts:
    return prune_attempts(database, days, now=NOW, dry_run=dry_run)


def test_a_settled_task_keeps_its_newest_attempt_and_dry_run_reports(database: Database) -> None:
    tried(database)
    ended(database, ItemState.REJECTED)
    told = prune(database, dry_run=True)
    assert (left(database), blobs(database)) == ([1, 2, 3, 4], 4)
    done = prune(database)
    assert (told.attempts, told.bytes) == (done.attempts, done.bytes) == (3, done.bytes)
    assert done.bytes > 0
    assert (left(database), blobs(database)) == ([4], 1)
    with database.transaction() as connection:
        assert log_of_attempt(connection, MONTH, KEY, 4) == "log of 4\n" * 100
    assert [(what, why) for what, why, _ in done.gone()] == [
        ("3 attempts at locks and images", "unreferenced and older than 180 days")
    ]
    assert "to remove: attempts 3" in told.summary
    assert "removed: attempts 3" in done.summary
    assert list(prune(database).gone()) == []


def test_what_held_what_followed_it_at_once_and_what_agents_made_stays(database: Database) -> None:
    agent = {"rung": Rung.AGENT, "rule": "agent:codex", "dollars": 1.0}
    tried(database, 7, n2=HELD, n5=agent)
    ended(database, ItemState.DONE)
    prune(database)
    assert left(database) == [2, 3, 5, 7], "1, 4 and 6 failed, and tell nothing that is asked for"
    prune(database)
    assert left(database) == [2, 3, 5, 7], "what follows one that held now, did not then"


def test_what_another_run_tried_after_one_that_held_tells_nothing_of_fixes(database: Database) -> None:
    tried(database, 4, n1=HELD, n2={"run_id": "another"})
    ended(database, ItemState.DONE)
    prune(database)
    assert left(database) == [1, 4]


@pytest.mark.parametrize("state", [ItemState.FAILED, ItemState.SKIPPED, None])
def test_of_an_open_item_everything_stays(database: Database, state: ItemState | None) -> None:
    tried(database, MOST_EARLIER + 2)
    if state is not None:
        ended(database, state)
    # where it was done in another stage it is as open
    ended(database, ItemState.DONE, Stage.CLASSIFICATIONS)
    prune(database)
    assert len(left(database)) == MOST_EARLIER + 2


def test_a_failed_task_keeps_as_many_attempts_as_an_agent_would_see(database: Database) -> None:
    tried(database, MOST_EARLIER + 2)
    ended(database, ItemState.FAILED)
    released(database)
    prune(database)
    assert left(database) == list(range(3, MOST_EARLIER + 3))


def test_attempts_at_locks_are_judged_by_the_stage_they_were_made_in(database: Database) -> None:
    tried(database, 2, n1={"made_in": Stage.ENVIRONMENTS})
    ended(database, ItemState.DONE)
    prune(database)
    assert left(database) == [1, 2]
    ended(database, ItemState.DONE, Stage.ENVIRONMENTS)
    prune(database)
    assert left(database) == [2]


@pytest.mark.parametrize("days", [0, 201])
def test_what_is_younger_stays_and_without_an_age_all(database: Database, days: int) -> None:
    tried(database)
    ended(database, ItemState.DONE)
    assert prune(database, days).attempts == 0
    assert left(database) == [1, 2, 3, 4]
    assert ("for ever" in prune(database, days).summary) is (days == 0)


def keep_logs(database: Database, count: int, text: str = "log of {}") -> None:
    with database.transaction() as connection:
        for attempt in range(1, count + 1):
            put_log(
                connection,
                stage=Stage.IMAGES,
                month=MONTH,
                item=ITEM,
                attempt=attempt,
                state=ItemState.FAILED,
                run_id="run",
                text=text.format(attempt),
            )
        connection.execute(LOGS.update().values(written_at=OLD))


def test_of_the_logs_of_a_stage_the_newest_stays(database: Database) -> None:
    keep_logs(database, 3)
    assert prune(database).logs == 0, "nothing says that it is settled"
    ended(database, ItemState.FAILED)
    assert prune(database).logs == 0, "it may be tried again"
    ended(database, ItemState.DONE)
    assert prune(database, dry_run=True).logs == 2
    done = prune(database)
    assert [what for what, _, _ in done.gone()] == ["2 logs of stages"]
    with database.transaction() as connection:
        assert get_log(connection, stage=Stage.IMAGES, month=MONTH, item=ITEM) == "log of 3"
    assert blobs(database) == 1


def test_the_newest_log_is_the_last_written_not_that_of_most_tries(database: Database) -> None:
    keep_logs(database, 3)
    with database.transaction() as connection:
        last = LOGS.c.attempt == 1
        connection.execute(LOGS.update().where(last).values(written_at=OLD + timedelta(days=1)))
    ended(database, ItemState.DONE)
    assert prune(database).logs == 2
    with database.transaction() as connection:
        assert get_log(connection, stage=Stage.IMAGES, month=MONTH, item=ITEM) == "log of 1"


def test_a_log_that_something_else_refers_to_stays(database: Database) -> None:
    """A stage's log is often that of its last attempt, and texts are kept once."""
    tried(database, 2)
    keep_logs(database, 1, "log of 1\n" * 100)
    ended(database, ItemState.DONE)
    assert prune(database, dry_run=True).bytes == 0
    assert prune(database).attempts == 1
    with database.transaction() as connection:
        assert get_log(connection, stage=Stage.IMAGES, month=MONTH, item=ITEM) == "log of 1\n" * 100


def test_many_go_in_several_transactions(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 2)
    tried(database, 6)
    ended(database, ItemState.DONE)
    told, done = prune(database, dry_run=True), prune(database)
    assert (done.attempts, told.bytes) == (5, done.bytes)
    assert blobs(database) == 1


def test_a_log_being_stored_is_not_removed_meanwhile(database: Database) -> None:
    tried(database, 2)
    ended(database, ItemState.DONE)
    pruner = threading.Thread(target=prune, args=(database,))
    with database.transaction() as connection:
        # the same text as the log that is to go: found there, and not yet referred to
        put_blob(connection, "log", b"log of 1\n" * 100)
        pruner.start()
        pruner.join(0.3)
        assert pruner.is_alive(), "it waits"
        again = make_attempt(number=6, attempt=1, started_at=NOW, log="log of 1\n" * 100)
        save_attempt(connection, again)
    pruner.join(10)
    assert left(database) == [2]
    with database.transaction() as connection:
        assert log_of_attempt(connection, again.month, (7, 6), 1) == again.log
