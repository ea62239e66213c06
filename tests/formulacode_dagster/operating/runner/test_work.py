from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.runner.work import StageSummary

FAILED = LedgerEntry(
    stage=Stage.REPOSITORIES,
    month="2026-02",
    item="discovery",
    state=ItemState.FAILED,
    reason="incomplete",
    detail="5 of 6 files",
)


def test_a_stage_that_cannot_do_without_an_item_fails_with_that_item() -> None:
    with pytest.raises(ItemFailure, match="5 of 6 files"):
        StageSummary(standing=(FAILED,)).require_done()
    StageSummary(standing=(FAILED.model_copy(update={"state": ItemState.DONE}),)).require_done()


def test_a_dry_run_is_not_failed_by_what_an_earlier_run_left() -> None:
    StageSummary(standing=(FAILED,), would_do=("discovery",), dry_run=True).require_done()
