from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest

from assets.materialize import ItemConfig, stage_run, usage_metadata
from assets.partitions import MONTHS
from assets.pull_requests import pull_requests
from assets.repositories import repositories
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, OutsideSystemError
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner.failures import FAILURES_WITHIN_BUDGET
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.runner.progress import ProgressListener, listener, listening
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.repositories import record_github
from formulacode_dagster.operating.store.usage import add_usage
from resources.intake import IntakeResource
from resources.postgres import PostgresResource
from tests.support.gates import open_gates


class Announced(ProgressListener):
    """Keeps what is announced."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def announce(self, text: str) -> None:
        self.texts.append(text)


def usage(run_id: str) -> ApiUsage:
    return ApiUsage(
        run_id=run_id,
        stage=Stage.PULL_REQUESTS,
        month="2026-02",
        resource="graphql",
        started_at=datetime.now(tz=UTC),
        requests=7,
        points=9,
        waited_seconds=61.26,
    )


def test_what_the_runs_stage_asked_of_github_is_summed_up(database: Database) -> None:
    run = StageRun(database, Stage.PULL_REQUESTS, "2026-02", "run 1")
    assert usage_metadata(run) == {}
    for run_id in ("run 1", "run 1", "run 1", "another"):
        with database.transaction() as connection:
            add_usage(connection, [usage(run_id)])
    found = usage_metadata(run)
    assert (found["github_requests"], found["github_points"], found["github_waited_seconds"]) == (21, 27, 183.8)
    (record,) = found["github"].records
    assert record.data["resource"] == "graphql"


@pytest.fixture
def postgres(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresResource]:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    yield (resource := PostgresResource())
    resource.teardown_after_execution(dg.build_init_resource_context())


def test_a_wait_and_a_warning_stand_in_the_log_of_the_run(
    postgres: PostgresResource, dagster_instance: dg.DagsterInstance
) -> None:

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        with stage_run(context, postgres, repositories, ItemConfig()):
            listener().waiting(Stage.REPOSITORIES, "GitHub's limit of graphql requests", 754.0)
            listener().warn(Stage.REPOSITORIES, "the cache was damaged")

    result = dg.materialize([probe], partition_key="2026-02", instance=dagster_instance)
    said = [entry.user_message for entry in dagster_instance.all_logs(result.run_id)]
    assert any(text.startswith("waiting 12 min 34 s, until ") for text in said)
    assert "the cache was damaged" in said
    assert type(listener()) is ProgressListener


def test_a_stage_that_cannot_begin_leaves_its_gates_as_they_are(
    postgres: PostgresResource, database: Database, dagster_instance: dg.DagsterInstance
) -> None:
    open_gates(database, pull_requests, "2026-02")

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        with stage_run(context, postgres, repositories, ItemConfig()):
            raise ConfigurationError("it dies")

    died = dg.materialize([probe], partition_key="2026-02", raise_on_error=False, instance=dagster_instance)
    assert not died.success
    require_open(database, "2026-02", [(Stage.REPOSITORIES, FAILURES_WITHIN_BUDGET)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "delay", "tries"),
    [
        (OutsideSystemError("github", "gone"), "0", 1),
        (OutsideSystemError("github", "gone"), "1", 2),
        (ConfigurationError("no value"), "1", 1),
    ],
)
def test_a_stage_is_retried_once_after_an_outage_if_configured(
    postgres: PostgresResource,
    dagster_instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    error: FormulaCodeError,
    delay: str,
    tries: int,
) -> None:
    monkeypatch.setenv("FC_RETRY_SECONDS", delay)
    seen: list[int] = []
    announced = Announced()

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        seen.append(context.retry_number)
        with stage_run(context, postgres, repositories, ItemConfig()):
            raise error

    with listening(announced):
        result = dg.materialize([probe], partition_key="2026-02", raise_on_error=False, instance=dagster_instance)
    (failure,) = result.get_step_failure_events()
    assert seen == list(range(tries))
    assert failure.step_failure_data.user_failure_data.description == str(error)
    assert announced.texts == [f"{error}; trying once more in 1 s"] * (tries - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("tags", "tries"), [({}, 1), ({"dagster/retry_number": "1"}, 2)])
def test_a_relaunched_run_waits_for_the_month_and_a_second_one_is_refused(
    postgres: PostgresResource,
    database: Database,
    dagster_instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    tags: dict[str, str],
    tries: int,
) -> None:
    monkeypatch.setenv("FC_RETRY_SECONDS", "1")
    monkeypatch.setattr("assets.materialize.BUSY_TRIES", 1)
    monkeypatch.setattr("formulacode_dagster.operating.store.database.LOCK_PAUSE", 0.0)
    seen: list[int] = []

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        seen.append(context.retry_number)
        with stage_run(context, postgres, repositories, ItemConfig()):
            pytest.fail("it got in")

    with database.month_lock(Stage.REPOSITORIES, "2026-02", "first"):
        result = dg.materialize(
            [probe], partition_key="2026-02", raise_on_error=False, instance=dagster_instance, tags=tags
        )
    assert not result.success
    assert seen == list(range(tries))


@pytest.mark.parametrize("takes_in", [False, True])
def test_only_intake_needs_months_of_its_own_github(
    postgres: PostgresResource,
    database: Database,
    dagster_instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    takes_in: bool,
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "https://api.github.com")
    with database.transaction() as connection:
        record_github(connection, "git.corp.example")

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        with stage_run(context, postgres, repositories, ItemConfig(), source=IntakeResource() if takes_in else None):
            pass

    done = dg.materialize([probe], partition_key="2026-02", raise_on_error=False, instance=dagster_instance)
    assert done.success is not takes_in


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True])
def test_a_stage_that_is_forced_knows_what_its_run_has_done(
    postgres: PostgresResource, dagster_instance: dg.DagsterInstance, force: bool
) -> None:
    seen: list[frozenset[str]] = []

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        with stage_run(context, postgres, repositories, ItemConfig(force=force)) as run:
            seen.append(run.continues)

    result = dg.materialize([probe], partition_key="2026-02", instance=dagster_instance)
    assert seen == [frozenset([result.run_id] if force else [])]
