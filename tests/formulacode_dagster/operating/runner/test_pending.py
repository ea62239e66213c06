"""Which attempt at an item is its last."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import REPAIRABLE_KINDS, FailureKind
from formulacode_dagster.operating.runner.pending import MAX_ATTEMPTS, is_last_attempt, is_pending
from formulacode_dagster.operating.runner.work import WorkItem

ITEM = WorkItem("a/b#1", "v1", None)


def ended(
    attempt: int,
    inputs: str = "v1",
    state: ItemState = ItemState.FAILED,
    reason: FailureKind = FailureKind.SURVEY_UNFINISHED,
) -> LedgerEntry:
    return LedgerEntry(
        stage=Stage.MEASUREMENTS,
        month="2026-02",
        item=ITEM.name,
        state=state,
        reason=reason,
        attempt=attempt,
        inputs=inputs,
    )


@pytest.mark.parametrize(
    ("before", "is_last"),
    [
        pytest.param(None, False, id="never tried"),
        pytest.param(ended(1), False, id="tried once"),
        pytest.param(ended(MAX_ATTEMPTS - 1), True, id="one is left"),
        pytest.param(ended(MAX_ATTEMPTS), True, id="forced"),
        pytest.param(ended(MAX_ATTEMPTS - 1, "v0"), False, id="of other inputs"),
        pytest.param(ended(MAX_ATTEMPTS - 1, state=ItemState.REJECTED), False, id="rejected"),
    ],
)
def test_the_last_attempt_is_told_from_the_ledger(before: LedgerEntry | None, is_last: bool) -> None:
    assert is_last_attempt(ITEM, before) is is_last


def test_what_fails_at_its_last_attempt_is_not_pending() -> None:
    assert is_pending(ITEM, ended(MAX_ATTEMPTS - 1))
    assert not is_pending(ITEM, ended(MAX_ATTEMPTS))


@pytest.mark.parametrize("reason", sorted(REPAIRABLE_KINDS))
def test_a_mirror_that_a_person_repairs_is_tried_by_every_run(reason: FailureKind) -> None:
    assert is_pending(ITEM, ended(MAX_ATTEMPTS + 5, reason=reason))
    assert not is_pending(ITEM, ended(1, reason=FailureKind.LOCK))
    assert not is_pending(ITEM, ended(1, state=ItemState.REJECTED, reason=reason))
