from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.checks import record_verdict, verdicts
from formulacode_dagster.operating.store.database import Database
from tests.support.strategies import rows_of

MONTH = "2026-02"


def judged(check: str, stage: Stage = Stage.PULL_REQUESTS, **fields: object) -> CheckVerdict:
    facts = {"stage": stage, "month": MONTH, "check": check, "passed": True, "blocking": True, "summary": "fine"}
    return CheckVerdict.model_validate({**facts, **fields})


def record(database: Database, *said: CheckVerdict) -> None:
    with database.transaction() as connection:
        for check in said:
            record_verdict(connection, check, "run")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_verdict_comes_back_equal(database: Database, data: st.DataObject) -> None:
    written = data.draw(rows_of(CheckVerdict, month=MONTH))
    with database.engine.connect() as connection:
        record_verdict(connection, written, "run")
        assert verdicts(connection, MONTH) == [written]


def test_the_newest_verdict_replaces_the_one_before(database: Database) -> None:
    record(database, judged("counts_match", passed=False, offenders=("a/b",)), judged("counts_match"))
    with database.transaction() as connection:
        assert verdicts(connection, MONTH) == [judged("counts_match")]


def test_verdicts_are_read_by_month(database: Database) -> None:
    images, earlier = judged("imports", Stage.IMAGES), judged("counts_match", month="2026-01")
    record(database, judged("window_and_shas_valid"), judged("counts_match"), images, earlier)
    with database.transaction() as connection:
        found = verdicts(connection, MONTH)
        assert [check.check for check in found] == ["imports", "counts_match", "window_and_shas_valid"]
        assert verdicts(connection, "2026-01") == [earlier]
        assert verdicts(connection, "2025-12") == []


def test_a_verdict_with_any_figure_and_any_offender_can_be_kept(database: Database) -> None:
    record(database, judged("share", figures={"share": math.inf, "low": 0.5}, offenders=("a\x00b",), summary="\ud800"))
    with database.transaction() as connection:
        (found,) = verdicts(connection, MONTH)
    assert found.figures == {"share": math.inf, "low": 0.5}
    assert (found.offenders, found.summary) == (("a\ufffdb",), "\ufffd")
