from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import GateClosedError
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.readiness import parts_left_out, require_tasks

MONTH = "2026-02"


def enter(database: Database, stage: Stage, state: ItemState, reason: str = "", month: str = MONTH) -> None:
    entry = LedgerEntry(stage=stage, month=month, item="a/b#1", state=state, reason=reason)
    with database.transaction() as connection:
        ledger.record(connection, [entry])


def accepted(stage: Stage) -> Acceptance:
    moment = datetime(2026, 3, 5, tzinfo=UTC)
    said = {"accepted_by": "Ada", "reason": "a quiet month", "summary": "no pull request is done"}
    return Acceptance(month=MONTH, stage=stage, accepted_at=moment, failed=0, done=0, **said)


def test_a_month_of_which_parts_were_left_out_is_not_whole(database: Database) -> None:
    enter(database, Stage.ENVIRONMENTS, ItemState.SKIPPED, SkipReason.NOT_ASKED)
    enter(database, Stage.PUBLISHED_IMAGES, ItemState.SKIPPED, SkipReason.NO_REGISTRY)
    with database.transaction() as connection:
        assert parts_left_out(connection, MONTH).startswith("1 items of environments were left out by a limited run")
    enter(database, Stage.ENVIRONMENTS, ItemState.DONE)
    enter(database, Stage.REPLAYS, ItemState.SKIPPED, SkipReason.NOT_ASKED)
    enter(database, Stage.EXPORTS, ItemState.SKIPPED, SkipReason.NOT_ASKED)
    with database.transaction() as connection:
        assert parts_left_out(connection, MONTH) == ""


def test_a_month_without_tasks_is_not_tagged_where_earlier_ones_had_some(database: Database) -> None:
    with database.transaction() as connection:
        require_tasks(connection, MONTH, 0, [])
    enter(database, Stage.PUBLISHED_DATASET, ItemState.DONE, month="2026-01")
    with database.transaction() as connection:
        require_tasks(connection, MONTH, 1, [])
        for others in ([], [accepted(Stage.IMAGES)]):
            with pytest.raises(GateClosedError, match=r"no task to release: 2026-01 had some.*fc-data accept"):
                require_tasks(connection, MONTH, 0, others)
        require_tasks(connection, MONTH, 0, [accepted(Stage.PUBLISHED_DATASET)])
