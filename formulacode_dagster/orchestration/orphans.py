"""Runs whose process was killed, or never was here: of the command line, below a `fc-data dev`, or out of a backup.

Dagster would show them as running, and keep their slots in the pools, for ever: the next run would wait for a slot.
"""

from __future__ import annotations

import os

import dagster as dg

from formulacode_dagster.building.engines.owner import Owner

PROCESS = ".dagster/formulacode/process"
"""Tag of a run: the process it lives in."""
CODE_SERVER = ".dagster/formulacode/code_server"
"""Tag of a run below a code server: the `fc-data dev` that serves it, or else the machine."""
SERVED_BY = "FORMULACODE_SERVED_BY"
"""Variable in the environment of Dagster's services: the `fc-data dev` that started them."""

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_UI_STOPPED = "The UI was stopped; launch it again to continue"
_RESTORED = "It was under way when the backup was made; launch it again to continue"


def process_tag() -> dict[str, str]:
    """The tag that lets `end_orphans` find a run of this process once the process is gone."""
    return {PROCESS: Owner.current("").model_dump_json()}


def code_server() -> str:
    """Owner of the code server for processes that this one launches, see `CODE_SERVER`."""
    return os.environ.get(SERVED_BY) or Owner.current("").host


def is_of_command_line(run: dg.DagsterRun) -> bool:
    """Return True if *run* lives in a process of the command line.

    A run that the UI repeats has the tags of the first one; it was launched, so it has an origin.
    """
    return PROCESS in run.tags and run.remote_job_origin is None


def end_orphans(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """End runs whose process, or whose `fc-data dev`, is surely gone, give back their slots, and return their ids."""
    ended: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if is_of_command_line(run) and _is_gone(run.tags[PROCESS]):
            instance.report_run_failed(run, "its process was killed; the next run continues")
        elif _is_gone(run.tags.get(CODE_SERVER, "")):
            instance.report_run_canceled(run, _UI_STOPPED)
        else:
            continue
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return tuple(ended)


def end_served(instance: dg.DagsterInstance, server: str) -> None:
    """Mark the runs below *server*, which has ended, as canceled, and give back their slots."""
    for run in instance.get_runs(dg.RunsFilter(tags={CODE_SERVER: server}, statuses=_UNFINISHED)):
        instance.report_run_canceled(run, _UI_STOPPED)
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def end_restored(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """End the runs that were under way in the backup just restored, and return their ids; every slot is free then.

    Those that still waited in the queue wait on.
    """
    runs = instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED))
    for run in runs:
        # not as failed: those may be relaunched before anyone has looked
        instance.report_run_canceled(run, _RESTORED)
    # SQLite files are copied at separate moments, so a finished run may hold some, too
    for run_id in instance.event_log_storage.get_concurrency_run_ids():
        instance.event_log_storage.free_concurrency_slots_for_run(run_id)
    return tuple(run.run_id for run in runs)


def _is_gone(told: str) -> bool:
    owner = Owner.parse(told)
    return owner is not None and owner.is_dead()
