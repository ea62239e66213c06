"""A shared stage while servers and clocks go wrong: every item is done once, and somebody does it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import nullcontext
from datetime import timedelta

import pytest
from sqlalchemy import text

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.progress import ProgressListener, listening
from formulacode_dagster.operating.runner.work import RunRole
from formulacode_dagster.operating.store.database import Database
from tests.support.shared_stage import NAMES, Runs

ONE_AT_A_TIME = RunOptions(concurrency=1)


class Told(ProgressListener):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, stage: Stage, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def runs(database: Database) -> Runs:
    return Runs(database)


def cut_all_connections(database: Database) -> None:
    """As a restart of the server does: its sessions end, and with them the locks of months; rows stay."""
    others = text(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with database.transaction() as connection:
        connection.execute(others)


def test_a_restarted_postgres_costs_a_shared_stage_nothing(runs: Runs, database_url: str) -> None:
    administrator = Database(database_url)

    def restart(_: str) -> None:
        if len(runs.done) == 2:
            # nothing is being written meanwhile
            while len(runs.entries) < 2:
                threading.Event().wait(0.02)
            cut_all_connections(administrator)

    asyncio.run(runs.run(RunRole.LEADS, "leader", options=ONE_AT_A_TIME, at_work=restart))
    administrator.close()
    assert Counter(item for _, item in runs.done) == Counter(NAMES)
    assert runs.entries == dict.fromkeys(NAMES, "leader")


def test_a_second_leader_while_the_first_lives_takes_none_of_its_items(runs: Runs) -> None:
    """A restarted server has dropped the lock of the first, which does not know of it; then the first fails."""
    is_at_work, resumable = threading.Event(), threading.Event()

    def hold(_: str) -> None:
        is_at_work.set()
        resumable.wait(20)

    def let_go(_: str) -> None:
        resumable.set()

    async def both() -> None:
        first = asyncio.create_task(runs.run(RunRole.LEADS, "first", options=ONE_AT_A_TIME, at_work=hold))
        await asyncio.to_thread(is_at_work.wait, 20)
        second = runs.run(RunRole.LEADS, "second", options=ONE_AT_A_TIME, at_work=let_go)
        await asyncio.gather(first, second)

    asyncio.run(both())
    assert Counter(item for _, item in runs.done) == Counter(NAMES)
    assert set(runs.entries) == set(NAMES)


def test_a_leader_that_ends_leaves_the_stage_to_one_that_leads_it_by_now(runs: Runs) -> None:
    first = runs.open(*NAMES, by="first")
    runs.open(*NAMES, by="second")
    with runs.database.transaction() as connection:
        claims.close_stage(connection, first, "first")
        (shared,) = claims.shared_stages(connection)
    assert (shared.run_id, shared.free) == ("second", len(NAMES))


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_server_s_clock_that_jumps_takes_no_item_from_a_living_worker(runs: Runs, hours: int) -> None:
    """The lease is then hours too late or too early; a worker's own clock does not matter."""

    def jump(_: str) -> None:
        with runs.database.transaction() as connection:
            moved = "UPDATE claims SET lease_until = lease_until - make_interval(hours => :hours)"
            connection.execute(text(f"{moved} WHERE claimed_by = 'lives'"), {"hours": hours})

    runs.open(*NAMES)
    asyncio.run(runs.run(RunRole.HELPS, "lives", options=ONE_AT_A_TIME, at_work=jump))
    assert Counter(item for _, item in runs.done) == Counter(NAMES)
    assert runs.entries == dict.fromkeys(NAMES, "lives")


@pytest.mark.parametrize("error", [ConfigurationError("all connections are in use"), RuntimeError("a bug")])
def test_what_keeps_a_lease_from_being_renewed_once_is_told(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    renewed, calls, tell = threading.Event(), [], Told()

    def renew(*_: object) -> None:
        calls.append(None)
        if len(calls) == 1:
            raise error
        renewed.set()

    monkeypatch.setattr(claims, "renew", renew)
    is_ours = isinstance(error, ConfigurationError)

    def until_renewed(_: str) -> None:
        assert renewed.wait(20 if is_ours else 0.5) is is_ours

    runs.open(NAMES[0])
    lease = timedelta(seconds=0.3)
    with listening(tell), nullcontext() if is_ours else pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(runs.run(RunRole.HELPS, "helper", lease=lease, at_work=until_renewed))
    assert set(runs.entries) == {NAMES[0]}
    assert any("all connections are in use" in text for text in tell.notes) is is_ours
