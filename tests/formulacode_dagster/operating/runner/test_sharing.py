"""A stage that several runs share: every item is done once, whoever dies on the way."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.items import ItemState, RunOptions
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem
from formulacode_dagster.operating.runner.work import RunRole, StageSummary
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.operating.store.tables import CLAIMS
from tests.support.shared_stage import MONTH, NAMES, NONE, STAGE, Runs, worker


@pytest.fixture
def runs(database: Database) -> Runs:
    return Runs(database)


def test_every_item_is_done_once_by_whoever_claims_it(runs: Runs, database: Database) -> None:
    meeting, is_shared = threading.Barrier(3, timeout=20), threading.Event()

    def once(first: list[None]) -> Callable[[str], None]:
        def meet(_: str) -> None:
            is_shared.set()
            # none continues before each of the three has work
            if first:
                first.pop()
                meeting.wait()

        return meet

    async def together() -> list[StageSummary]:
        alone = RunOptions(concurrency=1)
        leader = asyncio.create_task(runs.run(RunRole.LEADS, "leader", options=alone, at_work=once([None])))
        await asyncio.to_thread(is_shared.wait)
        helpers = [runs.run(RunRole.HELPS, name, options=alone, at_work=once([None])) for name in ("first", "second")]
        return await asyncio.gather(leader, *helpers)

    leader, *helpers = asyncio.run(together())
    assert Counter(item for _, item in runs.done) == Counter(NAMES)
    assert runs.entries == {item: name for name, item in runs.done}
    assert len(set(runs.entries.values())) == 3
    assert (leader.count(ItemState.DONE), len(leader.standing)) == (len(NAMES), len(NAMES))
    assert sum(len(summary.worked) for summary in (leader, *helpers)) == len(NAMES)
    with database.transaction() as connection:
        assert claims.shared_stages(connection) == []
        assert set(spending_of(connection, MONTH)) == {STAGE}


def test_what_ran_out_of_time_at_its_leader_is_shared_again(runs: Runs) -> None:
    fails = [NAMES[0]]

    def run_out_of_time(item: str) -> None:
        if item in fails:
            fails.remove(item)
            raise ItemFailure(FailureKind.SURVEY_UNFINISHED, "no time")

    leader = asyncio.run(runs.run(RunRole.LEADS, "leader", at_work=run_out_of_time))
    assert (leader.count(ItemState.DONE), len(leader.worked)) == (len(NAMES), len(NAMES) + 1)


def test_a_dead_worker_s_items_are_done_again_by_others(runs: Runs) -> None:
    runs.open(*NAMES)
    dead = worker("dead", NONE)
    lost = runs.claim(dead)
    asyncio.run(runs.run(RunRole.HELPS, "helper"))
    assert set(runs.entries) == set(NAMES)
    assert runs.entries[str(lost)] == "helper"


def test_what_was_taken_over_is_written_by_its_new_worker_alone(runs: Runs) -> None:
    """A worker that slept through its lease comes back with a result when another is at its item."""
    runs.open(NAMES[0])
    taken: list[str | None] = []

    def overslept(_: str) -> None:
        with runs.database.transaction() as connection:
            connection.execute(update(CLAIMS).values(lease_until=datetime.min.replace(tzinfo=UTC)))
        assert runs.claim(worker("late")) is None, "it is at it itself"
        taken.append(runs.claim(worker("other")))

    summary = asyncio.run(runs.run(RunRole.HELPS, "late", at_work=overslept))
    assert taken == [NAMES[0]]
    assert (summary.worked, runs.entries) == ((), {})
    with runs.database.transaction() as connection:
        assert claims.finish(connection, worker("other"), NAMES) == {NAMES[0]}


def test_a_lease_is_renewed_as_long_as_its_worker_lives(runs: Runs) -> None:
    runs.open(NAMES[0])

    def lease_until() -> datetime:
        with runs.database.transaction() as connection:
            return connection.execute(select(CLAIMS.c.lease_until)).scalar_one()

    def until_renewed(_: str) -> None:
        first, waiting = lease_until(), threading.Event()
        while lease_until() == first:
            waiting.wait(0.02)

    summary = asyncio.run(runs.run(RunRole.HELPS, "slow", lease=timedelta(seconds=0.6), at_work=until_renewed))
    assert [entry.item for entry in summary.worked] == [NAMES[0]]


def test_a_second_launch_joins_and_ends_when_all_is_finished(runs: Runs) -> None:
    runs.open(*NAMES[:2])
    other = worker("helper")
    held = runs.claim(other)

    def finish_it(_: str) -> None:
        with runs.database.transaction() as connection:
            claims.finish(connection, other, [str(held)])

    summary = asyncio.run(runs.run(RunRole.JOINS, "second", at_work=finish_it))
    assert [entry.item for entry in summary.worked] == [name for name in NAMES[:2] if name != held]


def test_a_new_leader_takes_over_items_and_leaves_helpers_theirs(runs: Runs) -> None:
    runs.open(*NAMES[:3])
    helper = worker("helper")
    held = str(runs.claim(helper))

    def finish_it(_: str) -> None:
        with runs.database.transaction() as connection:
            claims.finish(connection, helper, [held])

    asyncio.run(runs.run(RunRole.LEADS, "leader", NAMES[:3], at_work=finish_it))
    assert Counter(item for _, item in runs.done) == Counter(name for name in NAMES[:3] if name != held)


def test_a_worker_of_another_version_leaves_items_to_others(runs: Runs) -> None:
    runs.open(*NAMES[:2], inputs="v2")
    summary = asyncio.run(runs.run(RunRole.HELPS, "old", inputs="v1"))
    assert (summary.worked, runs.done) == ((), [])
    assert runs.claim(worker("new")) is not None


def test_where_a_worker_finds_a_system_dead_the_others_go_on(runs: Runs) -> None:
    runs.open(*NAMES)

    def dead(_: str) -> None:
        raise OutsideSystemError("docker", "gone")

    with pytest.raises(OutsideSystemError):
        asyncio.run(runs.run(RunRole.HELPS, "without docker", at_work=dead))
    asyncio.run(runs.run(RunRole.LEADS, "leader"))
    assert runs.entries == dict.fromkeys(NAMES, "leader")


def test_a_leader_that_stops_shares_nothing_any_more(runs: Runs) -> None:
    def dead(_: str) -> None:
        raise OutsideSystemError("docker", "gone")

    with pytest.raises(OutsideSystemError):
        asyncio.run(runs.run(RunRole.LEADS, "leader", at_work=dead))
    assert runs.claim(worker("helper")) is None
    with runs.database.transaction() as connection:
        assert claims.shared_stages(connection) == []


def test_the_longest_come_first_and_neighbours_stay_with_one_worker(runs: Runs) -> None:
    seconds = {"a#1": 5.0, "a#2": 5.0, "b#1": 9.0, "c#1": 2.0, "c#2": 1.0}
    with runs.database.transaction() as connection:
        items = [ClaimableItem(name, "v1", name[0], took) for name, took in seconds.items()]
        claims.open_stage(connection, worker("leader"), "leader", RunOptions(), items)
    first, second = worker("first"), worker("second")
    assert [runs.claim(first), runs.claim(second)] == ["a#1", "b#1"]
    assert [runs.claim(first, "a"), runs.claim(second, "b")] == ["a#2", "c#1"]
    assert [runs.claim(first, "a"), runs.claim(second, "c")] == ["c#2", None]


def test_what_repositories_took_before_is_what_they_are_expected_to_take(runs: Runs) -> None:
    asyncio.run(runs.run(RunRole.LEADS, "leader", NAMES[:5]))
    with runs.database.transaction() as connection:
        seconds = claims.expected_seconds(connection, STAGE)
        entries = ledger.entries_of(connection, MONTH, STAGE)
    of_two = [entry.cost.seconds for entry in entries if entry.item.startswith("Acme/two#")]
    assert set(seconds) == {"Acme/one", "Acme/two"}
    assert seconds["Acme/two"] == pytest.approx(sum(of_two) / len(of_two))


def test_what_is_on_another_machine_is_left_to_a_worker_there(runs: Runs) -> None:
    runs.open(*NAMES[:3])
    asyncio.run(runs.run(RunRole.HELPS, "here", NAMES[:3], elsewhere=NAMES[:1]))
    assert set(runs.entries) == set(NAMES[1:3])
    asyncio.run(runs.run(RunRole.HELPS, "there", NAMES[:3], elsewhere=NAMES[1:3]))
    assert runs.entries[NAMES[0]] == "there"


@pytest.mark.parametrize("part", [RunRole.LEADS, RunRole.JOINS])
def test_an_item_no_worker_has_is_finally_tried_by_the_waiting_one(runs: Runs, part: RunRole) -> None:
    if part is RunRole.JOINS:
        # its leader is gone
        runs.open(*NAMES[:2])
    alone = RunOptions(concurrency=1)
    asyncio.run(runs.run(part, "waits", NAMES[:2], elsewhere=NAMES[:1], lease=timedelta(seconds=0.3), options=alone))
    assert [item for _, item in runs.done] == [NAMES[1], NAMES[0]]
