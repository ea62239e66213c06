from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from formulacode_dagster.building.engines.machines import Machine
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.store.database import Database

SECONDS = 20


@pytest.fixture
def waits() -> list[str]:
    return []


@pytest.fixture
def machine(database: Database, waits: list[str]) -> Machine:
    return Machine(database, "daemon", note=waits.append, wait_seconds=0.01)


def test_several_build_at_once_and_several_are_timed_at_once(machine: Machine, waits: list[str]) -> None:
    with machine.building(), machine.building():
        pass
    with machine.timing(), machine.timing():
        pass
    assert waits == []


def test_a_build_waits_until_nothing_is_timed(machine: Machine, waits: list[str]) -> None:
    built = threading.Event()

    def build() -> None:
        with machine.building():
            built.set()

    with ThreadPoolExecutor() as pool:
        with machine.timing():
            building = pool.submit(build)
            assert not built.wait(0.3)
        building.result(SECONDS)
    assert built.is_set()
    assert waits == [
        "waits until nothing is timed on this machine; FC_BUILD_CGROUP gives builds of images cores of their own",
    ]


def test_who_waits_to_time_is_before_builds_that_begin_later(machine: Machine) -> None:
    order: list[str] = []
    wants_to_time, wants_to_build = threading.Event(), threading.Event()
    timer = Machine(machine.database, "daemon", note=lambda _: wants_to_time.set(), wait_seconds=0.01)
    builder = Machine(machine.database, "daemon", note=lambda _: wants_to_build.set(), wait_seconds=0.01)

    def time() -> None:
        with timer.timing():
            order.append("timed")

    def build() -> None:
        with builder.building():
            order.append("built")

    with ThreadPoolExecutor() as pool:
        with machine.building():
            timing = pool.submit(time)
            assert wants_to_time.wait(SECONDS)
            building = pool.submit(build)
            assert wants_to_build.wait(SECONDS)
            assert order == []
        timing.result(SECONDS)
        building.result(SECONDS)
    assert order == ["timed", "built"]


def test_other_machines_and_builds_with_cores_of_their_own_wait_for_nobody(machine: Machine, waits: list[str]) -> None:
    elsewhere = Machine(machine.database, "another daemon", note=waits.append)
    apart = Machine(machine.database, "daemon", has_build_cores=True, note=waits.append)
    with machine.timing(), elsewhere.building(), apart.building():
        pass
    with apart.building(), machine.timing(), apart.timing():
        pass
    assert waits == []


def test_what_is_built_or_tested_in_a_session_has_no_cores_of_its_own(machine: Machine) -> None:
    told: list[str] = []
    tested = threading.Event()
    apart = Machine(machine.database, "daemon", has_build_cores=True, note=told.append, wait_seconds=0.01)

    def test() -> None:
        with apart.working():
            tested.set()

    with ThreadPoolExecutor() as pool:
        with apart.timing():
            testing = pool.submit(test)
            assert not tested.wait(0.3)
        testing.result(SECONDS)
    assert told == ["waits until nothing is timed on this machine"]


def test_builds_that_begin_at_once_wait_for_no_timing(machine: Machine) -> None:
    notes: list[str] = []
    together = threading.Barrier(8)
    noting = Machine(machine.database, "daemon", note=notes.append, wait_seconds=0.01)

    def build() -> None:
        together.wait(SECONDS)
        for _ in range(20):
            with noting.building():
                pass

    with ThreadPoolExecutor(8) as pool:
        for building in [pool.submit(build) for _ in range(8)]:
            building.result(SECONDS)
    assert notes == []


def test_a_turn_ends_with_the_connection_of_its_holder(machine: Machine) -> None:
    held = ExitStack()
    held.enter_context(machine.timing())
    with machine.database.transaction() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND d.datname = current_database() AND l.pid <> pg_backend_pid()"
        )
    with machine.building():
        pass
    held.close()


def test_a_server_that_is_gone_is_named() -> None:
    gone = Machine(Database("postgresql://nobody@127.0.0.1:1/none"), "daemon")
    with pytest.raises(OutsideSystemError, match="does not answer"), gone.building():
        pass
