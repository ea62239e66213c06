from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import LedgerEntry, Stage
from formulacode_dagster.models.measurement import Measurement, Verdict
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.acceptances import add_acceptance
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import Spent, add_spending
from formulacode_dagster.operating.store.usage import add_usage
from formulacode_dagster.releasing.reporting.facts import ReportFacts, month_facts
from tests.records import make_classification, make_measurement, make_merged
from tests.support.entries import enter

MONTH = "2026-02"
HERE = "hub:owner/name"


def classified(number: int) -> Classification:
    return make_classification(number=number, difficulty="hard", confidence=0.9, reason="It caches.")


def measured(number: int, *speedups: float, **fields: object) -> Measurement:
    """One with so many benchmarks of these speed-ups."""
    by_name = {f"bench.time_{n}": speedup for n, speedup in enumerate(speedups)}
    return make_measurement(by_name, month=MONTH, repository_id=7, number=number, **fields)


@pytest.fixture
def told(
    database: Database, facts: ReportFacts, ledger_of_a_month: tuple[LedgerEntry, ...], asked: tuple[ApiUsage, ...]
) -> ReportFacts:
    """The facts read from a store that holds the month."""
    rows = [make_merged(month=MONTH, repository_id=7, repository="a/b", number=number) for number in range(1, 11)]
    with database.transaction() as connection:
        ledger.record(connection, ledger_of_a_month)
        add_usage(connection, asked)
        spent = [Spent(MONTH, entry.stage, "run", entry.cost, entry.item) for entry in ledger_of_a_month]
        add_spending(connection, spent)
        artifacts.MERGED_PULL_REQUESTS.save(connection, rows)
        artifacts.CLASSIFICATIONS.save(connection, [classified(number) for number in range(1, 8)])
        artifacts.MEASUREMENTS.save(
            connection,
            [
                measured(1, 4.0, 1.0, control_speedup=0.9),
                measured(2, 9.0),
                measured(3, 1.01),
                # repeated with force, and failed then
                measured(4, 5.0),
            ],
        )
        for check in facts.checks:
            record_verdict(connection, check, "run")
        for acceptance in facts.accepted:
            add_acceptance(connection, acceptance)
        assert facts.release is not None
        artifacts.RELEASES.save(connection, [facts.release])
        return month_facts(connection, Month.parse(MONTH), HERE)


def test_the_facts_are_read_from_the_store(told: ReportFacts, facts: ReportFacts) -> None:
    assert told.month == MONTH
    assert {(step.name, step.count) for step in told.funnel.steps} == {
        (step.name, step.count) for step in facts.funnel.steps
    }
    assert {check.check: check for check in told.checks} == {check.check: check for check in facts.checks}
    assert told.release == facts.release
    assert told.accepted == facts.accepted
    assert told.cost == facts.cost
    assert told.usage == facts.usage


def test_measured_tasks_come_fastest_first_with_what_the_picture_needs(told: ReportFacts) -> None:
    assert [(task.item, round(task.speedup, 6), task.verdict) for task in told.measured] == [
        ("a/b#2", 9.0, Verdict.FASTER),
        ("a/b#1", 2.0, Verdict.FASTER),
        ("a/b#3", 1.01, Verdict.UNCHANGED),
    ]
    first = told.measured[1]
    assert (first.category, first.difficulty) == ("cache_and_reuse", "hard")
    assert (first.ratios, first.benchmarks, first.faster) == ((4.0, 1.0), 2, ("bench.time_0",))
    assert (first.low, first.high) == pytest.approx((1.9, 2.1))
    assert first.control == 0.9


def test_a_measurement_that_was_repeated_and_failed_is_no_result_any_more(told: ReportFacts) -> None:
    assert "a/b#4" not in {task.item for task in told.measured}
    assert len(told.measured) == told.funnel.count("measured")


def test_the_first_month_has_no_month_before(database: Database) -> None:
    with database.transaction() as connection:
        before = month_facts(connection, Month.parse(FIRST_MONTH).previous(), HERE)
        untouched = month_facts(connection, Month.parse(MONTH), HERE)
    for facts in (before, untouched):
        assert facts.funnel.is_empty
        assert (facts.measured, facts.checks, facts.release) == ((), (), None)
    assert before.month == "2014-12"


def test_stages_alone_make_no_release(database: Database) -> None:
    with database.transaction() as connection:
        ledger.record(connection, [enter(Stage.PULL_REQUESTS, "a/b#1")])
        facts = month_facts(connection, Month.parse(MONTH), HERE)
    assert facts.release is None
    assert facts.funnel.count("pull_requests") == 1


def test_the_release_is_the_last_revision_at_the_reports_own_destination(
    database: Database, facts: ReportFacts
) -> None:
    first = facts.release
    assert first is not None
    revision = first.model_copy(update={"number": 2, "tag": f"{first.tag}.2"})
    # tagged again later
    older = first.model_copy(update={"number": 1, "tag": f"{first.tag}.1", "released_at": datetime.now(UTC)})
    elsewhere = older.model_copy(update={"number": 3, "tag": f"{first.tag}.3", "destination": "/elsewhere"})
    with database.transaction() as connection:
        artifacts.RELEASES.save(connection, [first, revision, older, elsewhere])
        assert month_facts(connection, Month.parse(MONTH), HERE).release == revision
        assert month_facts(connection, Month.parse(MONTH), "/elsewhere").release == elsewhere
        assert month_facts(connection, Month.parse(MONTH), "/new").release is None
