from __future__ import annotations

import pytest

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.errors import ConfigurationError, GateClosedError
from formulacode_dagster.models.items import ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import RejectionReason, SkipReason
from formulacode_dagster.operating.runner.failures import (
    FAILURES_WITHIN_BUDGET,
    accept_failures,
    failures_within_budget,
    judge_failures,
)
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.acceptances import acceptances
from formulacode_dagster.operating.store.checks import record_verdict, verdicts
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.ledger import Ending

MONTH = "2026-02"
GATES = ((Stage.IMAGES, FAILURES_WITHIN_BUDGET),)


def ending(state: ItemState, count: int, reason: str = "", kind: ItemKind = ItemKind.PULL_REQUEST) -> Ending:
    return Ending(Stage.CLASSIFICATIONS, kind, state, reason, count)


def test_a_stage_may_fail_as_much_as_its_budget_says_and_no_more() -> None:
    within = [ending(ItemState.DONE, 9), ending(ItemState.FAILED, 1, "timeout")]
    over = [ending(ItemState.DONE, 9), ending(ItemState.FAILED, 2, "timeout")]
    assert failures_within_budget(within, ["a/b#1"], 0.1, {}).passed
    verdict = failures_within_budget(over, ["a/b#1", "a/b#2"], 0.1, {})
    assert not verdict.passed
    assert verdict.summary == "2 of 11 pull requests failed, 10% may"
    assert verdict.offenders == ("a/b#1", "a/b#2")
    assert verdict.tally == {"timeout": {"items": 2}}


def test_model_failures_are_not_hidden_by_screened_items() -> None:
    endings = [
        ending(ItemState.REJECTED, 20_000, RejectionReason.TITLE),
        ending(ItemState.FAILED, 500, "model_answer"),
    ]
    verdict = failures_within_budget(endings, [], 0.1, {})
    assert verdict.summary == "500 of 500 pull requests failed, 10% may"


def test_what_the_model_decided_against_was_tried() -> None:
    endings = [ending(ItemState.REJECTED, 19, RejectionReason.NOT_PERFORMANCE), ending(ItemState.FAILED, 1, "timeout")]
    assert failures_within_budget(endings, [], 0.1, {}).passed


def test_failed_windows_are_not_hidden_by_other_pull_requests() -> None:
    endings = [
        ending(ItemState.DONE, 20_000),
        ending(ItemState.DONE, 5, kind=ItemKind.REPOSITORY),
        ending(ItemState.FAILED, 5, "incomplete", kind=ItemKind.REPOSITORY),
    ]
    assert failures_within_budget(endings, [], 0.1, {}).summary == "5 of 10 repositories failed, 10% may"


@pytest.mark.parametrize(
    "endings",
    [
        [],
        [ending(ItemState.REJECTED, 30, RejectionReason.NOT_PERFORMANCE)],
        [ending(ItemState.SKIPPED, 3, "no_registry")],
    ],
)
def test_nothing_done_is_over_budget_where_earlier_months_had_some(endings: list[Ending]) -> None:
    assert failures_within_budget(endings, [], 1.0, {}).passed
    assert failures_within_budget(endings, [], 1.0, {ItemKind.REPOSITORY: "2026-01"}).passed is False
    verdict = failures_within_budget(endings, [], 1.0, {ItemKind.PULL_REQUEST: "2026-01"})
    assert (verdict.passed, verdict.summary) == (False, "no pull request is done, in 2026-01 some were")


def test_a_month_of_which_only_parts_were_asked_for_may_have_nothing() -> None:
    endings = [ending(ItemState.SKIPPED, 30, SkipReason.NOT_ASKED)]
    assert failures_within_budget(endings, [], 0.1, {ItemKind.PULL_REQUEST: "2026-01"}).passed


def enter(database: Database, *states: ItemState, month: str = MONTH, stage: Stage = Stage.IMAGES) -> None:
    entries = [
        LedgerEntry(
            stage=stage, month=month, item=f"a/b#{number}", state=state, reason="build" * (state is ItemState.FAILED)
        )
        for number, state in enumerate(states, 1)
    ]
    with database.transaction() as connection:
        ledger.record(connection, entries)


def judge(database: Database) -> CheckVerdict:
    with database.transaction() as connection:
        judgement = judge_failures(connection, MONTH, Stage.IMAGES, 0.1)
        verdict = CheckVerdict(
            **dict(judgement), stage=Stage.IMAGES, month=MONTH, check=FAILURES_WITHIN_BUDGET, blocking=True
        )
        record_verdict(connection, verdict, "run")
    return verdict


def accept(database: Database, by: str = "Ada", reason: str = "a mirror was down") -> CheckVerdict:
    return accept_failures(database, MONTH, Stage.IMAGES, 0.1, by=by, reason=reason, run_id="test")


def test_the_ledger_is_what_is_judged_and_earlier_months_are_those_before(database: Database) -> None:
    enter(database, ItemState.DONE, month="2026-03")
    enter(database, ItemState.DONE, month="2026-01", stage=Stage.MEASUREMENTS)
    assert judge(database).passed
    enter(database, ItemState.DONE, month="2025-12")
    enter(database, ItemState.DONE, month="2026-01")
    assert judge(database).summary == "no pull request is done, in 2026-01 some were"


def test_the_gate_says_how_to_accept_and_opens_for_what_a_person_accepted(database: Database) -> None:
    enter(database, ItemState.DONE, ItemState.FAILED)
    assert not judge(database).passed
    with pytest.raises(GateClosedError, match="or accept it as it is: fc-data accept --month 2026-02 --stage images"):
        require_open(database, MONTH, GATES)
    verdict = accept(database)
    assert verdict.summary == "1 of 2 pull requests failed, 10% may; accepted by Ada: a mirror was down"
    require_open(database, MONTH, GATES)
    assert judge(database).passed, "judged anew it stays accepted"
    with database.transaction() as connection:
        (kept,) = acceptances(connection, MONTH)
        (stored,) = verdicts(connection, MONTH)
    assert (kept.accepted_by, kept.reason, kept.failed, kept.done) == ("Ada", "a mirror was down", 1, 1)
    assert stored.passed


def test_what_failed_after_it_was_accepted_is_not_accepted(database: Database) -> None:
    enter(database, ItemState.DONE, ItemState.FAILED)
    accept(database)
    enter(database, ItemState.DONE, ItemState.FAILED, ItemState.FAILED)
    assert not judge(database).passed
    accept(database, by="Grace")
    assert judge(database).passed
    with database.transaction() as connection:
        assert [acceptance.accepted_by for acceptance in acceptances(connection, MONTH)] == ["Ada", "Grace"]


def test_what_was_done_when_it_was_accepted_has_to_stay_done(database: Database) -> None:
    enter(database, ItemState.DONE, ItemState.FAILED)
    accept(database)
    enter(database, ItemState.REJECTED, ItemState.FAILED)
    assert not judge(database).passed


def test_accepting_takes_a_name_a_reason_and_something_to_accept(database: Database) -> None:
    enter(database, ItemState.DONE)
    with pytest.raises(ConfigurationError, match="nothing of images of 2026-02 is to be accepted"):
        accept(database)
    enter(database, ItemState.FAILED)
    for by, reason in ((" ", "why"), ("Ada", "")):
        with pytest.raises(ConfigurationError, match="it takes a name and a reason"):
            accept(database, by, reason)
    with database.transaction() as connection:
        assert acceptances(connection, MONTH) == []


def test_a_part_of_a_month_may_have_nothing_done_but_fails_as_much_as_a_whole() -> None:
    earlier = {ItemKind.PULL_REQUEST: "2026-01"}
    rejected = [ending(ItemState.REJECTED, 1, RejectionReason.NOT_PERFORMANCE)]
    assert not failures_within_budget(rejected, [], 0.1, earlier).passed
    assert failures_within_budget(rejected, [], 0.1, earlier, is_part=True).passed
    assert not failures_within_budget([ending(ItemState.FAILED, 1, "timeout")], [], 0.1, {}, is_part=True).passed
