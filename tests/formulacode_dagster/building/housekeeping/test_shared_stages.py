from __future__ import annotations

from datetime import timedelta

import pytest

from formulacode_dagster.building.housekeeping.shared_stages import close_deserted_stages
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, Worker
from formulacode_dagster.operating.store.database import Database

MONTH, STAGE = "2026-02", Stage.IMAGES
KILLED = Worker(STAGE, MONTH, "killed", timedelta(minutes=1))


@pytest.fixture
def shared(database: Database) -> Database:
    """With a stage of two items; whoever opened it was killed, and its leases ran out."""
    with database.transaction() as connection:
        items = [ClaimableItem(f"a/b#{number}", "v1", "a/b", 1.0) for number in (1, 2)]
        claims.open_stage(connection, KILLED, "leader", RunOptions(), items)
    return database


def listed(database: Database) -> list[Stage]:
    with database.transaction() as connection:
        return [it.stage for it in claims.shared_stages(connection)]


def test_a_stage_whose_leader_was_killed_is_shared_no_longer(shared: Database) -> None:
    for dry_run, left in ((True, [STAGE]), (False, [])):
        assert [it.stage for it in close_deserted_stages(shared, dry_run=dry_run)] == [STAGE]
        assert listed(shared) == left
    assert close_deserted_stages(shared, dry_run=False) == ()
    with shared.transaction() as connection:
        assert claims.claim(connection, KILLED) is None, "nor are its items"


def test_one_that_a_helper_is_at_stays(shared: Database) -> None:
    with shared.transaction() as connection:
        assert claims.claim(connection, Worker(STAGE, MONTH, "helper", timedelta(minutes=1)))
    assert close_deserted_stages(shared, dry_run=False) == ()
    assert listed(shared) == [STAGE]


def test_one_that_a_run_leads_stays(shared: Database) -> None:
    with shared.month_lock(STAGE, MONTH, "leader"):
        assert close_deserted_stages(shared, dry_run=False) == ()
    assert listed(shared) == [STAGE]
