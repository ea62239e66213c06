from __future__ import annotations

import pytest

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.errors import GateClosedError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database

GATES = ((Stage.PULL_REQUESTS, "counts_match"),)


def judge(database: Database, *, passed: bool, month: str = "2026-02", blocking: bool = True) -> None:
    verdict = CheckVerdict(
        stage=Stage.PULL_REQUESTS,
        month=month,
        check="counts_match",
        passed=passed,
        blocking=blocking,
        summary="35 of 81 stored",
        offenders=("a/b",),
    )
    with database.transaction() as connection:
        record_verdict(connection, verdict, "run")


def test_a_gate_that_failed_in_an_earlier_run_stays_shut_and_says_why(database: Database) -> None:
    judge(database, passed=False)
    with pytest.raises(GateClosedError, match=r"counts_match is shut for 2026-02: 35 of 81 stored \(a/b\)"):
        require_open(database, "2026-02", GATES)


def test_a_gate_without_a_verdict_is_shut_too(database: Database) -> None:
    judge(database, passed=True, month="2026-01")
    with pytest.raises(GateClosedError, match="not judged"):
        require_open(database, "2026-02", GATES)


def test_a_gate_opens_when_it_is_judged_again(database: Database) -> None:
    judge(database, passed=False)
    judge(database, passed=True)
    require_open(database, "2026-02", GATES)


def test_a_gate_that_only_warns_is_open(database: Database) -> None:
    judge(database, passed=False, blocking=False)
    require_open(database, "2026-02", GATES)
