"""The simulated month: its bound, its targets, and that the platform's own queue gives every item out once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bench import scale
from bench.scale import ONE_STORE, OWN_STORES, Spread, missed, spread_of
from bench.scale_month import Task, bound_of, recorded, tasks_of_a_month
from bench.scale_simulation import STAGES, ImageStore, Simulation
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from tests.support.sharing import RunFolder


def task(item: str, lock: str, *, measurement: float = 100.0) -> Task:
    return Task(item, lock, environment=10.0, layer=50.0, image=20.0, measurement=measurement)


def test_no_schedule_beats_the_longest_task_or_the_total_work() -> None:
    bound = bound_of([task("a/b#1", "x"), task("a/b#2", "x"), task("a/c#1", "y", measurement=400.0)])
    assert bound.work == 3 * 30 + 2 * 50 + 600
    assert bound.critical_path == 480
    assert [bound.of(workers) for workers in (1, 2)] == [790, 480]


def test_the_month_is_the_same_every_time_and_follows_what_was_recorded() -> None:
    facts = recorded()
    tasks = tasks_of_a_month(60, 5, facts, seed=3)
    assert tasks == tasks_of_a_month(60, 5, facts, seed=3)
    assert len({it.item for it in tasks}) == 60
    assert max(Counter(it.lock for it in tasks).values()) <= 8
    least, most = (pick(fact.measurement for fact in facts) for pick in (min, max))
    assert least / 4 < min(it.measurement for it in tasks) < max(it.measurement for it in tasks) < most * 4


def spread(makespan: float, overhead: float) -> Spread:
    return Spread(4, ONE_STORE, makespan, 100.0, 1.0, 0.0, 0.0, overhead)


def test_each_target_that_is_missed_is_named() -> None:
    assert missed([spread(114.0, 0.019)], 59.0) == []
    assert [miss.partition(":")[0] for miss in missed([spread(116.0, 0.021)], 61.0)] == [
        "4 workers, one store",
        "4 workers, one store",
        "the backfill",
    ]


@pytest.mark.slow
def test_one_worker_takes_the_total_work_and_several_share_every_item_once(database: Database) -> None:
    tasks = tasks_of_a_month(12, 4, recorded(), seed=2)
    for workers, month in ((1, "2026-01"), (3, "2026-02")):
        simulation = Simulation(database, month, tasks, [ImageStore()] * workers, seed=1)
        asyncio.run(simulation.run())
        assert simulation.done == len(tasks) * len(STAGES)
        assert simulation.clock >= bound_of(tasks).of(workers) * (1 - 1e-9)
        if workers == 1:
            assert simulation.clock == pytest.approx(bound_of(tasks).work)
        with database.transaction() as connection:
            entries = ledger.entries_of(connection, month, Stage.MEASUREMENTS)
        assert {entry.item for entry in entries} == {it.item for it in tasks}
        assert len({entry.run_id for entry in entries}) == workers


def test_with_a_store_each_what_a_worker_built_is_measured_by_it(database: Database) -> None:
    tasks = tasks_of_a_month(12, 4, recorded(), seed=2)
    stores = [ImageStore(), ImageStore()]
    asyncio.run(Simulation(database, "2026-02", tasks, stores, seed=1).run())
    with database.transaction() as connection:
        entries = ledger.entries_of(connection, "2026-02", Stage.MEASUREMENTS)
    for number, store in enumerate(stores):
        assert {entry.item for entry in entries if entry.run_id == f"worker {number}"} == store.images != set()


@pytest.mark.slow
def test_the_figures_of_a_small_month(database_url: str, run_folder: RunFolder) -> None:
    tasks = tasks_of_a_month(12, 4, recorded(), seed=2)
    spreads = spread_of(database_url, run_folder.path / "postgres", tasks, 40, [1, 2])
    assert [(it.workers, it.stores) for it in spreads] == [(1, ONE_STORE), (2, ONE_STORE), (2, OWN_STORES)]
    assert spreads[0].ratio == pytest.approx(1.0)
    assert all(it.ratio > 1 - 1e-9 and 0 < it.overhead < 1 and it.statements_per_second > 0 for it in spreads)
    # each row of the table has as many cells as its head
    assert len({row.count("|") for row in scale.table(spreads)}) == 1
