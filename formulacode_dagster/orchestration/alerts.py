"""Sensors that notify people: a run failed, checks of a successful run failed, a month is late.

They run in the daemon, never in the run they report: a dead channel becomes an error of the sensor's tick.
"""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
from sqlalchemy import select

from formulacode_dagster.operating.monitoring.alert import Alert, AlertKind, FailedCheck, late_month
from formulacode_dagster.operating.monitoring.channels import deliver
from formulacode_dagster.operating.store.artifacts import RELEASES
from resources.alerts import AlertsResource
from resources.postgres import PostgresResource

LOOK_SECONDS = 60
LATE_SECONDS = 3600
_NOBODY = "no recipients: FC_ALERT_WEBHOOK, FC_ALERT_SLACK and FC_ALERT_MAIL_TO are empty"


# runs of the command line belong to no code location
@dg.run_failure_sensor(
    name="failed_runs",
    minimum_interval_seconds=LOOK_SECONDS,
    monitor_all_code_locations=True,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Notifies the recipients in FC_ALERT_… of each failed run, with its errors and failed checks.",
)
def failed_runs(context: dg.RunFailureSensorContext, alerts: AlertsResource) -> dg.SkipReason | None:
    """Report a failed run."""
    steps = [failure_text(event) for event in context.get_step_failure_events()]
    errors = tuple(text for text in steps if text) or (() if steps else (context.failure_event.message or "",))
    checks = failed_checks(context.instance, context.dagster_run.run_id)
    return _tell(alerts, _alert(alerts, AlertKind.RUN_FAILED, context.dagster_run, errors, checks))


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    name="failed_checks",
    minimum_interval_seconds=LOOK_SECONDS,
    monitor_all_code_locations=True,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Notifies them of each successful run with failed checks that do not block.",
)
def checks_of_succeeded_runs(context: dg.RunStatusSensorContext, alerts: AlertsResource) -> dg.SkipReason | None:
    """Report failed checks of a successful run."""
    checks = failed_checks(context.instance, context.dagster_run.run_id)
    if not checks:
        return dg.SkipReason("all checks of the run passed")
    return _tell(alerts, _alert(alerts, AlertKind.CHECKS_FAILED, context.dagster_run, (), checks))


@dg.sensor(
    name="late_months",
    minimum_interval_seconds=LATE_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Notifies them once of a month that is due and not released, if earlier ones were.",
)
def late_months(
    context: dg.SensorEvaluationContext, postgres: PostgresResource, alerts: AlertsResource
) -> dg.SkipReason | None:
    """Report a late month."""
    if not alerts.channels():
        return dg.SkipReason(_NOBODY)
    with postgres.database().transaction() as connection:
        released = set(connection.execute(select(RELEASES.table.c.month)).scalars())
    late = late_month(released, datetime.now(tz=UTC))
    if late is None or late.key == context.cursor:
        return dg.SkipReason("no month is late" if late is None else f"{late.key} is late, as reported before")
    failures = _undelivered(alerts, Alert(kind=AlertKind.MONTH_LATE, partition=late.key))
    if len(failures) == len(alerts.channels()):
        raise dg.Failure(description="\n".join(failures))
    # channels that succeeded are not repeated when another one fails
    context.update_cursor(late.key)
    return dg.SkipReason("; ".join([f"reported that {late.key} is late", *failures]))


def failed_checks(instance: dg.DagsterInstance, run_id: str) -> tuple[FailedCheck, ...]:
    """Return the failed checks of the run, blocking ones and others."""
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    events = [record.event_log_entry.dagster_event for record in records]
    verdicts = [event.asset_check_evaluation_data for event in events if event is not None]
    return tuple(
        FailedCheck(
            asset=verdict.asset_key.to_user_string(),
            check=verdict.check_name,
            blocking=verdict.severity is dg.AssetCheckSeverity.ERROR,
            summary=verdict.description or "",
        )
        for verdict in verdicts
        if not verdict.passed
    )


def _alert(
    alerts: AlertsResource,
    kind: AlertKind,
    run: dg.DagsterRun,
    errors: tuple[str, ...],
    checks: tuple[FailedCheck, ...],
) -> Alert:
    return Alert(
        kind=kind,
        job=run.job_name,
        run_id=run.run_id,
        partition=run.tags.get("dagster/partition", ""),
        errors=errors,
        checks=checks,
        url=alerts.run_url(run.run_id),
    )


def _tell(alerts: AlertsResource, alert: Alert) -> dg.SkipReason | None:
    """Notify every configured channel; raises `dagster.Failure` if one could not be reached."""
    if not alerts.channels():
        return dg.SkipReason(_NOBODY)
    if failures := _undelivered(alerts, alert):
        raise dg.Failure(description="\n".join(failures))
    return None


def _undelivered(alerts: AlertsResource, alert: Alert) -> list[str]:
    return [str(failure) for failure in deliver(alert.without(alerts.secrets()), alerts.channels())]


def failure_text(event: dg.DagsterEvent) -> str | None:
    """Return the step of *event* and its error; None if a check closed a gate: the check's report covers that."""
    data = event.step_failure_data
    if data.error is not None and data.error.cls_name == "DagsterAssetCheckFailedError":
        return None
    description = data.user_failure_data.description if data.user_failure_data else None
    error = data.error.cause if data.error and data.error.cause else data.error
    return f"{event.step_key}: {description or (error.message.strip() if error else 'failed')}"
