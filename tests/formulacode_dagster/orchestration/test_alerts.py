"""The sensors that tell people, over runs that really ended so."""

import json
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.operating.monitoring import channels
from formulacode_dagster.operating.store.artifacts import RELEASES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.orchestration.alerts import checks_of_succeeded_runs, failed_runs, late_months
from resources.alerts import AlertsResource
from resources.postgres import PostgresResource
from tests.support.receivers import Received, receiving_posts

MONTHS = dg.StaticPartitionsDefinition(["2026-02"])
PASSWORD = "hunter22"


@dg.asset(partitions_def=MONTHS)
def thing(context: dg.AssetExecutionContext) -> None:
    if context.run.tags.get("fail"):
        raise dg.Failure(f"postgresql://fc:{PASSWORD}@db/fc does not answer, nor {PASSWORD}", allow_retries=False)


@dg.asset_check(asset=thing)
def weak(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    failed = "weak" in context.run.tags
    return dg.AssetCheckResult(
        passed=not failed, severity=dg.AssetCheckSeverity.WARN, description="3 of 4 hold" if failed else "all hold"
    )


@dg.asset_check(asset=thing, blocking=True)
def strong(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed="strong" not in context.run.tags, description="one is missing")


JOB = dg.Definitions(
    assets=[thing], asset_checks=[weak, strong], jobs=[dg.define_asset_job("month")], executor=dg.in_process_executor
).resolve_job_def("month")


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A webhook that is set; FC_DATABASE_URL holds a password."""
    monkeypatch.setattr(channels, "WAITS", Backoff(0, 0))
    monkeypatch.setenv("FC_DATABASE_URL", f"postgresql://fc:{PASSWORD}@db/fc")
    monkeypatch.setenv("FC_DAGSTER_URL", "https://dagster.example.org/")
    with receiving_posts() as received:
        monkeypatch.setenv("FC_ALERT_WEBHOOK", received.url)
        yield received


def run(instance: dg.DagsterInstance, **tags: str) -> str:
    return JOB.execute_in_process(partition_key="2026-02", instance=instance, tags=tags, raise_on_error=False).run_id


def tick(sensor: dg.SensorDefinition, instance: dg.DagsterInstance, cursor: str | None) -> tuple[list[Any], str]:
    """The daemon's result of an evaluation, and the cursor that it keeps."""
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources={"alerts": AlertsResource()}) as context:
        done = sensor.evaluate_tick(context)
    return [*(done.dagster_run_reactions or []), done.skip_message], str(done.cursor)


def test_a_failed_run_is_reported_once_with_errors_and_no_secret(
    received: Received, dagster_instance: dg.DagsterInstance
) -> None:
    _, cursor = tick(failed_runs, dagster_instance, None)
    run(dagster_instance)
    run_id = run(dagster_instance, weak="yes", fail="yes")
    (reaction, _), cursor = tick(failed_runs, dagster_instance, cursor)
    assert reaction.error is None
    (skipped,), _ = tick(failed_runs, dagster_instance, cursor)
    assert skipped == "Sensor function returned an empty result"
    (payload,) = received.payloads
    assert PASSWORD not in json.dumps(payload)
    assert (payload["kind"], payload["run_id"], payload["partition"]) == ("run_failed", run_id, "2026-02")
    assert payload["url"] == f"https://dagster.example.org/runs/{run_id}"
    assert payload["errors"] == ["thing: *** does not answer, nor ***"]


def test_a_gate_that_shut_is_told_as_the_check_that_it_is(
    received: Received, dagster_instance: dg.DagsterInstance
) -> None:
    _, cursor = tick(failed_runs, dagster_instance, None)
    run(dagster_instance, weak="yes", strong="yes")
    tick(failed_runs, dagster_instance, cursor)
    (payload,) = received.payloads
    assert payload["errors"] == []
    assert sorted((check["check"], check["blocking"], check["summary"]) for check in payload["checks"]) == [
        ("strong", True, "one is missing"),
        ("weak", False, "3 of 4 hold"),
    ]


def test_a_check_that_does_not_block_is_told_of_a_run_that_succeeded(
    received: Received, dagster_instance: dg.DagsterInstance
) -> None:
    _, cursor = tick(checks_of_succeeded_runs, dagster_instance, None)
    run(dagster_instance)
    (skipped,), cursor = tick(checks_of_succeeded_runs, dagster_instance, cursor)
    assert skipped == "all checks of the run passed"
    run(dagster_instance, weak="yes")
    tick(checks_of_succeeded_runs, dagster_instance, cursor)
    (payload,) = received.payloads
    assert (payload["kind"], payload["title"]) == (
        "checks_failed",
        "formulacode: month 2026-02 succeeded, checks failed: 1",
    )
    assert [check["check"] for check in payload["checks"]] == ["weak"]


def test_a_dead_webhook_is_an_error_of_the_tick_not_of_the_run(
    received: Received, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_ALERT_SLACK", "http://127.0.0.1:9/services/T0/B0/s3cret")
    _, cursor = tick(failed_runs, dagster_instance, None)
    run_id = run(dagster_instance, fail="yes")
    (reaction, _), _ = tick(failed_runs, dagster_instance, cursor)
    ended = dagster_instance.get_run_by_id(run_id)
    assert reaction.error is not None
    assert "slack: takes no message" in reaction.error.message
    assert "s3cret" not in reaction.error.message
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE
    assert len(received.payloads) == 1, "the others are told"


@pytest.mark.parametrize("sensor", [failed_runs, checks_of_succeeded_runs])
def test_nobody_is_told_unless_somebody_is_set(
    sensor: dg.SensorDefinition, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FC_ALERT_WEBHOOK", "FC_ALERT_SLACK", "FC_ALERT_MAIL_TO"):
        monkeypatch.delenv(name, raising=False)
    _, cursor = tick(sensor, dagster_instance, None)
    run(dagster_instance, weak="yes", **({"fail": "yes"} if sensor is failed_runs else {}))
    (skipped,), _ = tick(sensor, dagster_instance, cursor)
    assert "FC_ALERT_WEBHOOK, FC_ALERT_SLACK and FC_ALERT_MAIL_TO are empty" in str(skipped)


def test_a_late_month_is_told_once_and_again_only_while_nobody_could_be(
    database: Database, database_url: str, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)

    with database.transaction() as connection:
        key = {"month": "2015-01", "tag": "formulacode@2015-02", "destination": "a folder"}
        connection.execute(RELEASES.table.insert().values(**key, document={}))

    def look(cursor: str | None) -> str | None:
        resources = {"alerts": AlertsResource(), "postgres": PostgresResource()}
        with dg.build_sensor_context(cursor=cursor, resources=resources) as context:
            late_months(context)
            return context.cursor

    received.statuses.extend([400])
    with pytest.raises(dg.Failure, match="webhook refuses messages"):
        look(None)
    late = look(None)
    assert late is not None
    assert look(late) == late
    assert [payload["partition"] for payload in received.payloads] == [late, late]
