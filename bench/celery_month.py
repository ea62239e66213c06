"""A month by the workers of deploy/celery: launched into its queue, with helper runs, until nothing runs any more."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from bench.celery_services import Services, services
from bench.scale_backfill import database_for_dagster
from formulacode_dagster.orchestration.helpers import helpers_sensor
from formulacode_dagster.orchestration.jobs import MONTH_JOB
from formulacode_dagster.orchestration.placement import BUILD, IO, MEASURE

WORKERS = ("first", "second")
LOOK_SECONDS = 0.5


def run_by_workers(folder: Path, month: str, settings: Mapping[str, str], database_url: str) -> None:
    """Run *month* over two workers for all queues; raises RuntimeError, with their output, if it fails.

    Dagster's storage is another database of the server at *database_url*.
    """
    folder.mkdir()
    with services(folder, database_for_dagster(database_url), settings) as deployed:
        deployed.start_daemon()
        for worker in WORKERS:
            deployed.start_worker(",".join((IO, BUILD, MEASURE)), worker)
        deployed.start_sensor(helpers_sensor.name)
        deployed.launch(MONTH_JOB.name, month, {})
        with dg.DagsterInstance.from_config(str(folder)) as instance:
            _wait_until_over(instance, deployed)
            (run,) = instance.get_runs(dg.RunsFilter(job_name=MONTH_JOB.name))
        if run.status is not dg.DagsterRunStatus.SUCCESS:
            raise RuntimeError(deployed.said())


def _wait_until_over(instance: dg.DagsterInstance, deployed: Services) -> None:
    pause = threading.Event()
    while not pause.wait(LOOK_SECONDS):
        runs = instance.get_runs()
        if runs and all(run.is_finished for run in runs):
            return
        if gone := deployed.ended():
            raise RuntimeError(f"{', '.join(gone)} ended\n{deployed.said()}")
