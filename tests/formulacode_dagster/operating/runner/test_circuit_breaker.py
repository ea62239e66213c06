from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, Rejection, SuspectedOutage
from formulacode_dagster.models.items import ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.operating.cancellation.last_answers import note_answer
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database

MONTH = "2026-02"
LOST = SuspectedOutage("llm", FailureKind.TIMEOUT, "no answer")
CACHED = Exception("nobody was asked")
OTHER = SuspectedOutage("git", FailureKind.VANISHED, "cannot be cloned")


def run(database: Database, ends: Mapping[str, Exception | None], *, concurrency: int = 1) -> StageSummary:
    """Work on items one after the other; None is one that is done with the help of the model, CACHED one without."""

    def work(item: WorkItem[Exception | None]) -> Outcome[str]:
        if item.value is None:
            note_answer("llm")
        elif item.value is not CACHED:
            raise item.value
        return Outcome("value")

    def save(connection: Connection, values: Sequence[str]) -> None: ...

    # the runner takes them from the first on
    items = [WorkItem(name, "v1", end) for name, end in ends.items()]
    stage_run = StageRun(database, Stage.CLASSIFICATIONS, MONTH, "run", RunOptions(concurrency=concurrency))
    return asyncio.run(run_items(stage_run, ItemKind.PULL_REQUEST, items, in_thread(work), save))


def states(database: Database) -> dict[str, str]:
    with database.transaction() as connection:
        return {entry.item: f"{entry.state} {entry.reason}".strip() for entry in ledger.entries_of(connection, MONTH)}


def test_three_unlike_items_lost_to_a_system_stop_the_stage(database: Database) -> None:
    rest = {f"e/e#{number}": None for number in range(20)}
    with pytest.raises(
        OutsideSystemError, match="3 items of 3 repositories in a row were lost to it: no answer"
    ) as dead:
        run(database, {"z/z#1": None, "a/a#1": LOST, "b/b#1": LOST, "c/c#1": LOST, **rest})
    assert dead.value.system == "llm"
    assert states(database) == {"z/z#1": "done"}


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_system_that_is_down_stops_all_items_in_progress(database: Database, concurrency: int) -> None:
    with pytest.raises(OutsideSystemError):
        run(database, {f"{name}/x#{n}": LOST for n in range(9) for name in "abcdef"}, concurrency=concurrency)
    assert states(database) == {}


def test_items_of_one_repository_may_have_it_of_that(database: Database) -> None:
    summary = run(database, {f"a/a#{number}": LOST for number in range(9)})
    assert summary.count(ItemState.FAILED) == 9
    assert summary.reasons == {"timeout": 9}


def test_an_answer_in_between_clears_the_system_and_others_fail(database: Database) -> None:
    ends = {"a/a#1": LOST, "b/b#1": LOST, "c/c#1": None, "d/d#1": LOST, "e/e#1": LOST}
    run(database, ends)
    assert states(database) == {name: "failed timeout" if end else "done" for name, end in ends.items()}


def test_what_is_done_without_asking_a_system_says_nothing_of_it(database: Database) -> None:
    with pytest.raises(OutsideSystemError):
        run(database, {"a/a#1": LOST, "b/b#1": LOST, "c/c#1": CACHED, "d/d#1": LOST, "e/e#1": LOST})
    assert states(database) == {"c/c#1": "done"}


def test_a_system_that_answers_clears_no_other(database: Database) -> None:
    with pytest.raises(OutsideSystemError) as dead:
        run(database, {"a/a#1": OTHER, "b/b#1": OTHER, "c/c#1": None, "d/d#1": OTHER})
    assert dead.value.system == "git"


def test_what_was_not_worked_on_says_nothing_of_the_system(database: Database) -> None:
    screened = Rejection(RejectionReason.TITLE)
    failed = ItemFailure(FailureKind.NO_BASE, "no base")
    with pytest.raises(OutsideSystemError):
        run(database, {"a/a#1": LOST, "b/b#1": screened, "c/c#1": LOST, "d/d#1": failed, "e/e#1": LOST})
    assert states(database) == {"b/b#1": "rejected title", "d/d#1": "failed no_base"}


def test_two_systems_are_two(database: Database) -> None:
    ends = {"a/a#1": LOST, "b/b#1": OTHER, "c/c#1": LOST, "d/d#1": OTHER}
    run(database, ends)
    assert set(states(database).values()) == {"failed timeout", "failed vanished"}
