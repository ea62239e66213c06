from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from formulacode_dagster.cli.attempts import show_attempts, show_judges, show_log, show_measurements
from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.classification import Classification, JudgeOpinion
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.measurement import Occasion, Source, WorkloadProvenance
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.attempts import save_attempt
from formulacode_dagster.operating.store.database import Database
from tests import records
from tests.records import make_measurement, make_merged, make_spec

ITEM = ItemName.parse("a/b#5")
GSL = Fix(rule="missing_header", evidence="fatal error: [/x] gsl/gsl_math.h", apt_packages=("libgsl-dev",))


def make_attempt(attempt: int, *fixes: Fix, **fields: object) -> BuildAttempt:
    return records.make_attempt(
        month="2026-02",
        repository_id=7,
        number=5,
        attempt=attempt,
        started_at=datetime(2026, 2, 3, tzinfo=UTC),
        seconds=2.0,
        spec=make_spec(fixes=fixes),
        **fields,
    )


@pytest.fixture
def told(database: Database) -> Database:
    facts = make_merged(month="2026-02", repository_id=7, repository="a/b", number=5)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
        save_attempt(
            connection, make_attempt(1, stage="task", rc=2, kind="build", detail="no gsl", log="first\n[/x] log")
        )
        save_attempt(connection, make_attempt(2, GSL, stage="done", rc=0, rule="missing_header", detail="3 benchmarks"))
    return database


def shown(database: Database, item: ItemName, attempt: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=200)
    with database.transaction() as connection:
        if attempt is None:
            show_attempts(console, connection, item)
        else:
            show_log(console, connection, item, attempt)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_attempt_is_listed_with_its_end_and_its_rule(told: Database) -> None:
    _, _, first, second = shown(told, ITEM).splitlines()
    assert first.split() == ["1", "2026-02-03", "00:00:00", "task", "2", "2.0", "no", "gsl"]
    for said in ("done", "missing_header", "[/x] gsl/gsl_math.h", "3 benchmarks"):
        assert said in second


def test_one_attempts_log_is_printed_whole(told: Database) -> None:
    assert shown(told, ITEM, 1) == "first\n[/x] log\n"
    with pytest.raises(ConfigurationError, match=r"a/b#5 has no attempt 3"):
        shown(told, ITEM, 3)


def test_nothing_is_said_of_an_item_without_attempts(told: Database) -> None:
    assert shown(told, ItemName.parse("a/b")) == ""
    assert shown(told, ItemName.parse("a/b#6")) == ""


def test_every_measurement_is_listed_with_why_it_was_made(told: Database) -> None:
    first = make_measurement({"bench.a": 1.0}, number=5, run_id="one")
    forced = make_measurement({"bench.a": 2.0}, number=5, run_id="two", occasion=Occasion.FORCED, reason="[noise]")
    forced = forced.model_copy(update={"provenance": WorkloadProvenance(source=Source.OWN_TESTS)})
    console = Console(file=io.StringIO(), width=200)
    with told.transaction() as connection:
        show_measurements(console, connection, ITEM)
        save(connection, [MeasuredPullRequest(first), MeasuredPullRequest(forced)])
        show_measurements(console, connection, ITEM)
    assert isinstance(console.file, io.StringIO)
    _, _, *lines = console.file.getvalue().splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["1", "first", "unchanged", "1.00×"],
        ["2", "forced:", "[noise]", "faster"],
    ]
    assert [line.split()[-2:] for line in lines] == [["base_suite", "one"], ["own_tests", "two"]]


def test_judges_are_listed_with_quotes_and_disagreements(told: Database) -> None:
    said = {"category": "cache_and_reuse", "difficulty": "easy", "confidence": 0.5, "reason": "", "temperature": None}
    first = JudgeOpinion(**said, model="one", is_performance=True, evidence=("[/x] = 1",), output_mode="tools")
    second = JudgeOpinion(**said, model="two", is_performance=False, evidence=(), output_mode="plain")
    verdict = Classification(
        **said,
        month="2026-02",
        repository_id=7,
        number=5,
        is_performance=True,
        evidence=first.evidence,
        model="one",
        prompt_version="2",
        patch_truncated=False,
    )
    disputed = verdict.model_copy(update={"opinions": (first, second), "disagreements": ("is_performance",)})
    console = Console(file=io.StringIO(), width=200)
    with told.transaction() as connection:
        show_judges(console, connection, ITEM)
        CLASSIFICATIONS.save(connection, [verdict])
        show_judges(console, connection, ITEM)
        CLASSIFICATIONS.save(connection, [disputed])
        show_judges(console, connection, ITEM)
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    yes = ["one", "yes", "cache_and_reuse", "easy", "0.50", "[/x]", "=", "1"]
    assert [line for line in lines if line[:1] in (["one"], ["two"])] == [
        yes,
        yes,
        ["two", "no", "cache_and_reuse", "easy", "0.50"],
    ]
    assert lines[-1] == ["They", "disagree", "on", "is_performance."]
