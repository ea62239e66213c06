from __future__ import annotations

import ast
import asyncio
import errno
import time
from collections.abc import Sequence
from contextlib import nullcontext

import pytest
from sqlalchemy import Connection

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.errors import (
    ConfigurationError,
    GateClosedError,
    ItemFailure,
    NotAsked,
    OutsideSystemError,
    Rejection,
)
from formulacode_dagster.models.items import Cost, ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.models.reasons import FailureKind, RejectionReason, SkipReason
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.runner.pending import MAX_ATTEMPTS
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.blobs import get_log
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import spending_of
from tests.support.entries import MONTH, states_of


class Kept:
    """Collects what the runner saves."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.seen: list[str] = []

    def __call__(self, connection: Connection, values: Sequence[str]) -> None:
        self.values.extend(values)


def run(
    database: Database,
    names: Sequence[str],
    kept: Kept,
    *,
    inputs: str = "v1",
    options: RunOptions = RunOptions(),
    trouble: dict[str, Exception] | None = None,
) -> StageSummary:
    def work(item: WorkItem[str]) -> Outcome[str]:
        kept.seen.append(item.name)
        error = (trouble or {}).get(item.name)
        if error is not None:
            raise error
        return Outcome(item.value.upper(), Cost(tokens_in=10), log=f"log of {item.name}")

    items = [WorkItem(name, inputs, name) for name in names]
    stage_run = StageRun(database, Stage.IMAGES, MONTH, "run", options)
    return asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, in_thread(work), kept))


@pytest.mark.parametrize("source", ["-" * 100_000 + "1", "a." * 100_000 + "b"], ids=["MemoryError", "RecursionError"])
def test_source_that_breaks_a_parser_costs_its_item_a_named_failure(database: Database, source: str) -> None:
    def work(item: WorkItem[str]) -> Outcome[str]:
        ast.parse(item.value)
        return Outcome(item.name)

    items = [WorkItem("a/b#1", "v1", source), WorkItem("a/b#2", "v1", "x = 1")]
    stage_run = StageRun(database, Stage.IMAGES, MONTH, "run")
    summary = asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, in_thread(work), Kept()))
    failed, done = summary.standing
    assert (failed.state, failed.reason, done.state) == (ItemState.FAILED, FailureKind.NESTING, ItemState.DONE)
    assert failed.detail.startswith("its source is nested too deep for a parser: ")


def test_what_is_done_is_not_done_again(database: Database) -> None:
    kept = Kept()
    first = run(database, ["a/b#1", "a/b#2"], kept)
    assert (len(first.worked), first.unchanged, first.cost.tokens_in) == (2, 0, 20)
    second = run(database, ["a/b#1", "a/b#2"], kept)
    assert (len(second.worked), second.unchanged, second.cost) == (0, 2, Cost())
    assert second.count(ItemState.DONE) == 2
    assert sorted(kept.seen) == ["a/b#1", "a/b#2"]


def test_what_repeated_attempts_cost_stays_on_the_books(database: Database) -> None:
    def work(item: WorkItem[str]) -> Outcome[str]:
        return Outcome(item.name, Cost(bytes=10, tokens_in=5))

    for _ in range(3):
        stage_run = StageRun(database, Stage.IMAGES, MONTH, "run", RunOptions(force=True))
        asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, [WorkItem("a/b#1", "v1", "")], in_thread(work), Kept()))
    with database.transaction() as connection:
        (entry,) = ledger.entries_of(connection, MONTH)
        spent = spending_of(connection, MONTH)[Stage.IMAGES]
    assert (entry.cost.bytes, spent.bytes) == (10, 30)
    assert spent.tokens_in == 0, "the model's client books its calls itself"


def test_new_inputs_and_force_make_items_pending_again(database: Database) -> None:
    kept = Kept()
    run(database, ["a/b#1"], kept)
    assert len(run(database, ["a/b#1"], kept, inputs="v2").worked) == 1
    assert len(run(database, ["a/b#1"], kept, inputs="v2", options=RunOptions(force=True)).worked) == 1


def test_a_retry_of_a_forced_run_does_not_repeat_finished_items(database: Database) -> None:
    names, kept = ["a/b#1", "a/b#2", "a/b#3", "a/b#4"], Kept()
    run(database, names, kept)

    def forced(run_id: str, *, dies_at: str = "", inputs: str = "v1", redo: Sequence[str] = ()) -> list[str]:
        def work(item: WorkItem[str]) -> Outcome[str]:
            if item.name == dies_at:
                raise OutsideSystemError("docker", "gone")
            if (run_id, item.name) == ("first", "a/b#2"):
                raise ItemFailure(FailureKind.TIMEOUT, "slow")
            return Outcome(item.name)

        continues = frozenset(["first", "again"]) if run_id in ("first", "again") else frozenset([run_id])
        stage_run = StageRun(
            database, Stage.IMAGES, MONTH, run_id, RunOptions(force=True, concurrency=1), continues=continues
        )
        items = [WorkItem(name, inputs, name) for name in names]
        summary = asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, in_thread(work), kept, redo=redo))
        return sorted(entry.item for entry in summary.worked)

    with pytest.raises(OutsideSystemError):
        forced("first", dies_at="a/b#4")
    assert forced("again", redo=["a/b#1"]) == ["a/b#1", "a/b#2", "a/b#4"], "and what failed and may be cured"
    assert forced("again") == []
    assert forced("again", inputs="v2") == names
    assert forced("another") == names


def test_one_bad_item_never_stops_the_others(database: Database) -> None:
    kept = Kept()
    trouble: dict[str, Exception] = {
        "a/b#1": ItemFailure(FailureKind.BUILD, "does not build", log_tail="gcc said no"),
        "a/b#2": Rejection(RejectionReason.NO_SPEEDUP, "1.0×"),
        "a/b#3": ZeroDivisionError("a bug of ours"),
        "a/b#4": NotAsked(SkipReason.PROCESS_ENGINE, "no image"),
    }
    summary = run(database, [*trouble, "a/b#5"], kept, trouble=trouble)
    by_item = {entry.item: entry for entry in summary.standing}
    assert [by_item[f"a/b#{n}"].state.value for n in range(1, 6)] == ["failed", "rejected", "failed", "skipped", "done"]
    assert by_item["a/b#1"].log_tail == "gcc said no"
    assert by_item["a/b#3"].reason == "unexpected"
    assert "ZeroDivisionError" in by_item["a/b#3"].log_tail
    assert summary.reasons == {"build": 1, "no_speedup": 1, "unexpected": 1, "process_engine": 1}
    assert kept.values == ["A/B#5"]


def test_a_dead_system_stops_the_stage_and_the_next_run_finishes(database: Database) -> None:
    kept = Kept()
    names = [f"a/b#{n}" for n in range(1, 10)]
    with pytest.raises(OutsideSystemError, match="docker"):
        run(
            database,
            names,
            kept,
            options=RunOptions(concurrency=1),
            trouble={"a/b#4": OutsideSystemError("docker", "no daemon")},
        )
    assert states_of(database, Stage.IMAGES) == dict.fromkeys(["a/b#1", "a/b#2", "a/b#3"], ItemState.DONE)
    run(database, names, kept)
    assert set(states_of(database, Stage.IMAGES).values()) == {ItemState.DONE}
    assert kept.seen.count("a/b#1") == 1


@pytest.mark.parametrize(
    "trouble", [ConfigurationError("no token is accepted"), OSError(errno.ENOSPC, "No space left on device")]
)
def test_a_hopeless_error_stops_the_stage_and_fails_no_item(database: Database, trouble: Exception) -> None:
    kept = Kept()
    with pytest.raises((ConfigurationError, OutsideSystemError), match=r"no token|disk: no space left for a/b#2"):
        run(database, ["a/b#1", "a/b#2"], kept, options=RunOptions(concurrency=1), trouble={"a/b#2": trouble})
    assert states_of(database, Stage.IMAGES) == {"a/b#1": ItemState.DONE}


def test_transient_failures_are_retried_within_a_limit_not_permanent_ones(database: Database) -> None:
    kept = Kept()
    trouble: dict[str, Exception] = {
        "a/b#1": ItemFailure(FailureKind.TIMEOUT, "late"),
        "a/b#2": ItemFailure(FailureKind.BUILD, "broken"),
    }
    for _ in range(MAX_ATTEMPTS + 2):
        run(database, ["a/b#1", "a/b#2"], kept, trouble=trouble)
    assert kept.seen.count("a/b#1") == MAX_ATTEMPTS
    assert kept.seen.count("a/b#2") == 1


def test_what_ran_out_of_time_continues_in_the_same_run_after_the_others(database: Database) -> None:
    kept, trouble = Kept(), {"a/b#1": ItemFailure(FailureKind.SURVEY_UNFINISHED, "no time")}
    alone = RunOptions(concurrency=1)
    summary = run(database, ["a/b#1", "a/b#2"], kept, options=alone, trouble=trouble)
    assert kept.seen == ["a/b#1", "a/b#2", *["a/b#1"] * (MAX_ATTEMPTS - 1)]
    assert [entry.attempt for entry in summary.worked if entry.item == "a/b#1"] == [1, 2, 3]
    assert [(entry.item, entry.state) for entry in summary.standing] == [
        *(("a/b#1", ItemState.FAILED), ("a/b#2", ItemState.DONE))
    ]
    run(database, ["a/b#1", "a/b#2"], kept, options=alone, trouble=trouble)
    assert len(kept.seen) == MAX_ATTEMPTS + 1


def test_failures_of_a_dead_system_may_be_retried_without_limit(database: Database) -> None:
    trouble: dict[str, Exception] = {
        "a/b#1": ItemFailure(FailureKind.TIMEOUT, "no answer"),
        "a/b#2": OutsideSystemError("llm", "did not answer the last questions"),
    }
    for _ in range(MAX_ATTEMPTS + 2):
        with pytest.raises(OutsideSystemError):
            run(database, list(trouble), Kept(), options=RunOptions(concurrency=1), trouble=trouble)
    assert states_of(database, Stage.IMAGES) == {"a/b#1": ItemState.FAILED}
    run(database, list(trouble), Kept())
    assert set(states_of(database, Stage.IMAGES).values()) == {ItemState.DONE}


def test_only_and_limit_leave_the_rest_skipped_without_undoing_it(database: Database) -> None:
    kept = Kept()
    names = ["a/b#1", "a/b#2", "c/d#1"]
    run(database, names, kept, options=RunOptions(only=("a/b#2",)))
    assert {name: state.value for name, state in states_of(database, Stage.IMAGES).items()} == {
        "a/b#1": "skipped",
        "a/b#2": "done",
        "c/d#1": "skipped",
    }
    run(database, names, kept, options=RunOptions(limit_per_repository=1))
    assert kept.seen == ["a/b#2", "a/b#1", "c/d#1"]
    assert set(states_of(database, Stage.IMAGES).values()) == {ItemState.DONE}


def test_what_is_to_be_redone_is_pending_whatever_the_ledger_says(database: Database) -> None:
    kept = Kept()
    run(database, ["a/b#1", "a/b#2"], kept)

    async def work(item: WorkItem[str]) -> Outcome[str]:
        return Outcome(item.value)

    items = [WorkItem(name, "v1", name) for name in ("a/b#1", "a/b#2")]
    stage_run = StageRun(database, Stage.IMAGES, MONTH, "run")
    again = asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, work, kept, redo=["a/b#2"]))
    assert [entry.item for entry in again.worked] == ["a/b#2"]


def test_a_dry_run_names_what_it_would_do_and_writes_nothing(database: Database) -> None:
    kept = Kept()
    summary = run(database, ["a/b#1"], kept, options=RunOptions(dry_run=True))
    assert summary.would_do == ("a/b#1",)
    assert states_of(database, Stage.IMAGES) == {}
    assert kept.seen == []


def test_items_that_left_the_month_leave_the_ledger(database: Database) -> None:
    kept = Kept()
    run(database, ["a/b#1", "a/b#2"], kept)
    run(database, ["a/b#2"], kept)
    assert list(states_of(database, Stage.IMAGES)) == ["a/b#2"]


def test_whole_logs_are_kept_by_attempt(database: Database) -> None:
    run(database, ["a/b#1"], Kept())
    with database.transaction() as connection:
        assert get_log(connection, stage=Stage.IMAGES, month=MONTH, item="a/b#1") == "log of a/b#1"


def test_async_items_really_run_at_the_same_time(database: Database) -> None:
    together = asyncio.Event()
    arrived: list[str] = []

    async def work(item: WorkItem[str]) -> Outcome[str]:
        arrived.append(item.name)
        if len(arrived) == 5:
            together.set()
        await asyncio.wait_for(together.wait(), timeout=10)
        return Outcome("x")

    items = [WorkItem(f"a/b#{n}", "v", "") for n in range(5)]
    summary = asyncio.run(
        run_items(StageRun(database, Stage.IMAGES, MONTH, "run"), ItemKind.PULL_REQUEST, items, work, Kept())
    )
    assert summary.count(ItemState.DONE) == 5


def test_what_an_item_waits_for_is_no_work_of_its_own(database: Database) -> None:
    def work(item: WorkItem[str]) -> Outcome[str]:
        if item.name == "a/b#1":
            stop_request().sleep(1)
        else:
            time.sleep(1)
        return Outcome("x")

    items = [WorkItem(f"a/b#{n}", "v", "") for n in (1, 2)]
    stage = StageRun(database, Stage.IMAGES, MONTH, "run")
    asyncio.run(run_items(stage, ItemKind.PULL_REQUEST, items, in_thread(work), Kept()))
    with database.transaction() as connection:
        seconds = {entry.item: entry.cost.seconds for entry in ledger.entries_of(connection, MONTH, Stage.IMAGES)}
    assert seconds["a/b#1"] < 1 <= seconds["a/b#2"]


@pytest.mark.parametrize(("options", "is_open"), [(RunOptions(), False), (RunOptions(dry_run=True), True)])
def test_a_stage_with_work_shuts_its_gates_until_it_is_judged(database, options, is_open) -> None:
    def judge() -> None:
        for month in (MONTH, "2025-12"):
            verdict = CheckVerdict(
                stage=Stage.IMAGES, month=month, check="any", passed=True, blocking=True, summary="good"
            )
            with database.transaction() as connection:
                record_verdict(connection, verdict, "run")

    gates = [(Stage.IMAGES, "any")]
    judge()
    with pytest.raises(OutsideSystemError) if not options.dry_run else nullcontext():
        run(database, ["a/b#1"], Kept(), options=options, trouble={"a/b#1": OutsideSystemError("docker", "gone")})
    require_open(database, "2025-12", gates)
    with nullcontext() if is_open else pytest.raises(GateClosedError, match=r"not judged .* with its checks"):
        require_open(database, MONTH, gates)
    run(database, ["a/b#1"], Kept())
    judge()
    run(database, ["a/b#1"], Kept())
    require_open(database, MONTH, gates)
