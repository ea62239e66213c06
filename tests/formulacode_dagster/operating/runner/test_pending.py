"""Items that another run tries again."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.reasons import REPAIRABLE_KINDS, FailureKind
from formulacode_dagster.operating.runner.pending import MAX_ATTEMPTS, is_pending, within
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


def test_what_fails_at_its_last_attempt_is_not_pending() -> None:
    assert is_pending(ITEM, ended(MAX_ATTEMPTS - 1))
    assert not is_pending(ITEM, ended(MAX_ATTEMPTS))


@pytest.mark.parametrize("reason", sorted(REPAIRABLE_KINDS))
def test_a_mirror_that_a_person_repairs_is_tried_by_every_run(reason: FailureKind) -> None:
    assert is_pending(ITEM, ended(MAX_ATTEMPTS + 5, reason=reason))
    assert not is_pending(ITEM, ended(1, reason=FailureKind.LOCK))
    assert not is_pending(ITEM, ended(1, state=ItemState.REJECTED, reason=reason))


def test_a_step_without_which_a_stage_does_nothing_is_tried_by_every_run() -> None:
    entry = ended(MAX_ATTEMPTS + 5, reason=FailureKind.VANISHED)
    assert is_pending(WorkItem("discovery", "v1", None), entry)
    assert not is_pending(ITEM, entry)


def test_an_unexpected_error_may_be_one_of_the_moment() -> None:
    assert is_pending(ITEM, ended(MAX_ATTEMPTS - 1, reason=FailureKind.UNEXPECTED))
    assert not is_pending(ITEM, ended(MAX_ATTEMPTS, reason=FailureKind.UNEXPECTED))


@pytest.mark.parametrize(
    ("only", "asked"),
    [("NumPy/numpy#12", ["Numpy/NumPy", "Numpy/NumPy#12"]), ("numpy/NUMPY", ["Numpy/NumPy", "Numpy/NumPy#12"])],
)
def test_a_run_is_limited_to_names_in_any_case_as_on_github(only: str, asked: list[str]) -> None:
    items = [WorkItem(name, "", None) for name in ("Numpy/NumPy", "Numpy/NumPy#12", "numpy/other", "numpy/other#12")]
    assert [item.name for item in within(RunOptions(only=(only,)), items)[0]] == asked
