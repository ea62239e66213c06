"""Gates as an earlier run would have left them."""

from __future__ import annotations

from assets.stage_asset import StageAsset
from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database


def open_gates(database: Database, asset: StageAsset, month: str) -> None:
    """Record that every gate before *asset* was judged and passed for *month*."""
    with database.transaction() as connection:
        for stage, check in asset.gates:
            verdict = CheckVerdict(stage=stage, month=month, check=check, passed=True, blocking=True, summary="good")
            record_verdict(connection, verdict, "test")
