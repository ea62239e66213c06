"""Runs whose process was killed: of the command line, and below a `fc-data dev`.

Dagster would show them as running, and keep their slots in the pools, for ever: the next run would wait for a slot.
"""

from __future__ import annotations

import os

import dagster as dg

from formulacode_dagster.engines.owner import Owner

PROCESS = "formulacode/process"
"""Tag of a run: the process it lives in."""
CODE_SERVER = "formulacode/code_server"
"""Tag of a run below a code server: the `fc-data dev` that serves it, or else the machine."""
SERVED_BY = "FORMULACODE_SERVED_BY"
"""Of the environment of Dagster's services: the `fc-data dev` that has started them."""

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_UI_STOPPED = "The UI was stopped; launch it again, it goes on where it was"


def process_tag() -> dict[str, str]:
    """The tag that lets `end_orphans` find a run of this process once the process is gone."""
    return {PROCESS: Owner.current("").model_dump_json()}


def code_server() -> str:
    """Whose the code server is that executes what this process launches, as `CODE_SERVER` has it."""
    return os.environ.get(SERVED_BY) or Owner.current("").host


def is_of_command_line(run: dg.DagsterRun) -> bool:
    """Whether *run* lives in a process of the command line.

    A run that the UI repeats has the tags of the first one; it was launched, so it has an origin.
    """
    return PROCESS in run.tags and run.remote_job_origin is None


def end_orphans(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """End runs whose process, or whose `fc-data dev`, is surely gone, give back their slots, and return their ids."""
    ended: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if is_of_command_line(run) and _is_gone(run.tags[PROCESS]):
            instance.report_run_failed(run, "its process was killed; the next run goes on where it was")
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


def _is_gone(told: str) -> bool:
    owner = Owner.parse(told)
    return owner is not None and owner.is_dead()
