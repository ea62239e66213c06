from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from formulacode_dagster.building.engines.machines import Machine
from formulacode_dagster.measuring.measurement.cores import Cores, leased_cores
from formulacode_dagster.operating.store.database import Database


def test_a_core_is_taken_as_long_as_the_block_and_free_afterwards():
    cores, seen = Cores(), []

    def choose(taken):
        seen.append(list(taken))
        return len(taken)

    with cores.reserved(choose) as first, cores.reserved(choose) as second:
        assert (first, second) == (0, 1)
    with pytest.raises(RuntimeError), cores.reserved(choose):
        raise RuntimeError
    with cores.reserved(choose):
        pass
    assert seen == [[], [0], [], []]


def test_a_core_that_another_run_leased_is_left_to_it(database: Database) -> None:
    ours, theirs = leased_cores(Machine(database, "daemon")), leased_cores(Machine(database, "daemon"))
    asked: list[list[int]] = []

    def choose(taken: Collection[int]) -> int:
        asked.append(list(taken))
        return next(core for core in (0, 1) if core not in taken)

    with ours.reserved(choose) as first, theirs.reserved(choose) as second:
        assert (first, second) == (0, 1)
        with leased_cores(Machine(database, "another daemon")).reserved(choose) as elsewhere:
            assert elsewhere == 0
    with theirs.reserved(choose) as again:
        assert again == 0
    assert asked == [[], [], [0], [], []]


def test_a_run_waits_while_others_have_all_cores(database: Database) -> None:
    waited = threading.Event()

    def choose(taken: Collection[int]) -> int:
        if 0 in taken:
            waited.set()
        return 0

    with ExitStack() as held, ThreadPoolExecutor() as pool:
        held.enter_context(leased_cores(Machine(database, "daemon")).reserved(lambda _: 0))

        def measure() -> bool:
            with Cores(Machine(database, "daemon").core, wait_seconds=0.01).reserved(choose):
                return True

        measuring = pool.submit(measure)
        assert waited.wait(20)
        assert not measuring.done()
        held.close()
        assert measuring.result(20)


def test_a_run_s_own_measurements_share_a_core_only_when_there_is_no_other(database: Database) -> None:
    cores = leased_cores(Machine(database, "daemon"))
    with cores.reserved(lambda _: 0) as first, cores.reserved(lambda _: 0) as second:
        assert (first, second) == (0, 0)


def test_a_core_is_leased_until_the_last_of_a_run_s_measurements_on_it_ends(database: Database) -> None:
    machine, cores = Machine(database, "daemon"), leased_cores(Machine(database, "daemon"))
    first, second = (cores.reserved(lambda _: 0) for _ in range(2))
    first.__enter__()
    with second:
        first.__exit__(None, None, None)
        with machine.core(0) as is_free:
            assert not is_free
    with machine.core(0) as is_free:
        assert is_free


def test_a_core_is_chosen_once_no_image_is_built_on_the_machine(database: Database) -> None:
    waits, chosen = threading.Event(), threading.Event()
    machine = Machine(database, "daemon", note=lambda _: waits.set(), wait_seconds=0.01)

    def choose(_: Collection[int]) -> int:
        chosen.set()
        return 0

    def measure() -> int:
        with leased_cores(machine).reserved(choose) as core:
            return core

    with ThreadPoolExecutor() as pool:
        with machine.building():
            measuring = pool.submit(measure)
            assert waits.wait(20)
            assert not chosen.is_set()
        assert measuring.result(20) == 0


@pytest.mark.parametrize("what", ["building", "choosing"])
def test_a_task_is_built_and_tested_while_no_other_is_timed(database: Database, what: str) -> None:
    waits, built = threading.Event(), threading.Event()
    machine = Machine(database, "daemon", note=lambda _: waits.set(), wait_seconds=0.01)
    ours, theirs = leased_cores(machine), leased_cores(Machine(database, "daemon"))

    def build() -> None:
        with getattr(ours, what)():
            built.set()

    with ThreadPoolExecutor() as pool:
        with theirs.reserved(lambda _: 0):
            building = pool.submit(build)
            assert waits.wait(20)
            assert not built.is_set()
        building.result(20)
    with getattr(ours, what)():
        pass
    with ours.reserved(lambda _: 0) as core:
        assert core == 0


def test_tasks_that_are_measured_at_once_do_not_wait_to_be_chosen_for(database: Database) -> None:
    cores = leased_cores(Machine(database, "daemon"), at_once=2)
    with cores.reserved(lambda _: 0), cores.choosing():
        pass
