"""`fc-data replay` lists replays of machines that name themselves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.cli.replay import _show
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Replay, ReplayVerdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import add_replay
from tests.records import MONTH, make_measurement


def test_a_machine_whose_name_is_markup_is_shown(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    measured = make_measurement({"bench.a": 2.0}).model_copy(update={"machine": "Xeon [/], [red]16 cores"})
    replay = Replay(
        month=MONTH,
        task_id="a__b-1",
        attempt=1,
        release="formulacode@2026-03",
        destination="a folder",
        replayed_at=datetime(2026, 4, 1, tzinfo=UTC),
        run_id="run",
        verdict=ReplayVerdict.CONFIRMED,
        detail="",
        is_same_harness=True,
        measurement=measured,
    )
    with database.transaction() as connection:
        add_replay(connection, replay)
    _show(Month.parse(MONTH))
    # in the list, and in the table of validity
    assert capsys.readouterr().out.count("Xeon [/], [red]16 cores") == 2
