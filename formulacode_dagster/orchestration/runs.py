"""Launching a month the way the command line does: Dagster runs it, the UI shows it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from filelock import FileLock
from sqlalchemy.exc import SQLAlchemyError

from assets.materialize import HELPS, helped
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.items import MONTH_STAGES, RunOptions, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.runner.claims import SharedStage
from formulacode_dagster.operating.runner.progress import listener
from resources.settings import default_pool_limits, read_settings

from .alerts import failure_text
from .build import build_definitions, ignore_beta_warnings
from .helpers import HELP_OP
from .home import IN_PROCESS, prepare_dagster_home, storage_errors
from .jobs import HELPER_JOB, MONTH_JOB
from .orphans import end_orphans, process_tag

OFFENDING = "offending"
"""Under which a check's metadata names its offenders."""
SHOWN_OFFENDERS = 5
LAUNCHED_BY = ".dagster/formulacode/launched_by"
"""Tag of runs that live in a process of the command line, not below the UI."""

WAIT_SECONDS = 30.0
"""Time between two reports of a wait."""
PARTITION = "dagster/partition"
OPENING_LOCK = "opening.lock"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class MonthResult:
    """How a run ended."""

    month: str
    run_id: str
    success: bool
    errors: tuple[str, ...]
    failed_checks: tuple[str, ...]


@contextmanager
def dagster_instance() -> Iterator[dg.DagsterInstance]:
    """The instance the UI serves too; runs whose process was killed are ended first.

    Raises OutsideSystemError when Dagster's storage cannot be read or written, inside the block too.
    """
    ignore_beta_warnings()
    folder = prepare_dagster_home()
    with (
        storage_errors(),
        _opened(folder) as instance,
    ):
        end_orphans(instance)
        yield instance


def _opened(folder: Path) -> dg.DagsterInstance:
    """The instance, by one process at a time: if two created its SQLite files at once, one file would be lost."""
    with FileLock(folder / OPENING_LOCK):
        return dg.DagsterInstance.from_config(str(folder), IN_PROCESS)


def set_pools(instance: dg.DagsterInstance) -> dict[str, int]:
    """Set the limits of the pools, which `dagster.yaml` cannot; returns those set now.

    Those that FC_POOLS names are as it says; of the others, a limit that somebody has set in the UI stays.
    """
    # a value that Dagster took from `default_limit` is no explicit choice
    now = {info.name: info.limit for info in instance.event_log_storage.get_pool_limits() if not info.from_default}
    wanted = {**default_pool_limits(), **now, **read_settings().given_pool_limits}
    changed = {name: limit for name, limit in wanted.items() if now.get(name) != limit}
    for name, limit in changed.items():
        instance.event_log_storage.set_concurrency_slots(name, limit)
    return changed


def run_month(
    instance: dg.DagsterInstance, month: Month, options: RunOptions, *, stages: tuple[Stage, ...] = ()
) -> MonthResult:
    """Materialize *month* (all of it, or *stages* with their checks) in this process.

    Raises Stopped, the run marked as canceled, when the process was asked to stop.
    """
    from assets.all import ASSETS, STAGE_ASSETS

    definitions = build_definitions()
    chosen = list(stages or MONTH_STAGES)
    config = {asset.stage.value: asset.config_of(options) for asset in STAGE_ASSETS if asset.stage in chosen}
    if not options.dry_run:
        job = MONTH_JOB.name if not stages else f"{stages[0].value}_only"
        return _execute(instance, definitions.resolve_job_def(job), month.key, config, {})
    # a dry run leaves no materialization behind and asks no gate
    result = dg.materialize(
        ASSETS,
        selection=[stage.value for stage in chosen],
        partition_key=month.key,
        resources=definitions.resources,
        run_config={"ops": config, **_QUIET},
        raise_on_error=False,
    )
    stop_request().raise_if_requested()
    return _month_result(month.key, result)


def assist_stage(instance: dg.DagsterInstance, shared: SharedStage) -> MonthResult:
    """Do, in this process, the free items of a stage that another run leads; raises as `run_month`."""
    return _execute(
        instance,
        build_definitions().resolve_job_def(HELPER_JOB.name),
        shared.month,
        {HELP_OP: {"config": {"stage": shared.stage.value}}},
        {HELPS: helped(shared.stage, shared.month, shared.run_id)},
    )


def _execute(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    month: str,
    config: Mapping[str, object],
    tags: Mapping[str, str],
) -> MonthResult:
    run_id = str(uuid.uuid4())
    stop_request().at_last(lambda: end_stopped(instance, run_id))
    with reporting_pool_waits(instance, run_id, listener().announce):
        result = job.execute_in_process(
            partition_key=month,
            run_config={"ops": config, **_QUIET},
            instance=instance,
            raise_on_error=False,
            run_id=run_id,
            tags={LAUNCHED_BY: "fc-data", **process_tag(), **tags},
        )
    if stop_request().requested:
        end_stopped(instance, run_id)
    stop_request().raise_if_requested()
    return _month_result(month, result)


@contextmanager
def reporting_pool_waits(
    instance: dg.DagsterInstance, run_id: str, say: ProgressReporter, seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Every *seconds*, say for which pool steps of *run_id* wait, and which runs hold it."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(seconds):
            # a busy SQLite answers next time
            with suppress(SQLAlchemyError):
                for text in pool_waits(instance, run_id):
                    say(text)

    thread = threading.Thread(target=watch, name="pool waits", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(seconds)


def pool_waits(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return a line for each step of *run_id* that waits for a pool."""
    found = []
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        info = instance.event_log_storage.get_concurrency_info(pool)
        holders = ", ".join(_named(instance, holder) for holder in sorted(info.active_run_ids - {run_id}))
        found += [
            f"{step.step_key} waits for the pool {pool}{f', held by {holders}' if holders else ''}"
            for step in info.pending_steps
            if step.run_id == run_id and step.assigned_timestamp is None
        ]
    return found


def _named(instance: dg.DagsterInstance, run_id: str) -> str:
    run = instance.get_run_by_id(run_id)
    month = run.tags.get(PARTITION) if run else None
    return f"run {run_id}{f' of {month}' if month else ''}"


def _month_result(month: str, result: dg.ExecuteInProcessResult) -> MonthResult:
    return MonthResult(
        month=month,
        run_id=result.run_id,
        success=result.success,
        errors=_errors(result),
        failed_checks=_failed_checks(result),
    )


def end_stopped(instance: dg.DagsterInstance, run_id: str) -> None:
    """Mark the run as canceled and give back its slots, unless it has succeeded or Dagster has marked it so."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.status not in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED):
        instance.report_run_canceled(run, "stopped; launch it again to continue")
        instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def _errors(result: Any) -> tuple[str, ...]:
    errors: list[str] = []
    for event in result.all_events:
        if event.is_step_failure:
            if text := failure_text(event):
                errors.append(text)
        elif event.is_failure and not errors and event.message:
            errors.append(event.message)
    return tuple(errors)


def _failed_checks(result: Any) -> tuple[str, ...]:
    return tuple(
        f"{check.asset_key.to_user_string()}/{check.check_name}: {check.description}{_offenders(check.metadata)}"
        for check in result.get_asset_check_evaluations()
        if not check.passed
    )


def _offenders(metadata: Mapping[str, Any]) -> str:
    if OFFENDING not in metadata:
        return ""
    records = metadata[OFFENDING].records
    named = [str(record.data["offender"]) for record in records[:SHOWN_OFFENDERS]]
    more = f" and {len(records) - len(named)} more" if len(records) > len(named) else ""
    return f" ({'; '.join(named)}{more})"
