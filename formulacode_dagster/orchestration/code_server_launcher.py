"""Dagster's launcher for runs that are processes below a code server, which also notices that one is gone.

Dagster's own never asks: a run whose code server was killed, or lost its power, is shown in progress until its time
limit, and keeps its slots in the pools.
"""

from __future__ import annotations

import time
from typing import Any

import dagster as dg

from formulacode_dagster.building.engines.owner import Owner

from .command_line_runs import LeavesCommandLineRuns
from .dagster_internals import (
    CheckRunHealthResult,
    DagsterGrpcClient,
    DagsterUserCodeUnreachableError,
    GetCurrentRunsResult,
    LaunchRunContext,
    WorkerStatus,
    deserialize_value,
)
from .orphans import CODE_SERVER, code_server

UNKNOWN_SECONDS = 60
"""Seconds for a run to begin before its code server is asked about it."""


class _AskingCodeServerRunLauncher(dg.DefaultRunLauncher):
    """Reports the health of a run by asking its code server."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Dagster's run monitoring is to ask."""
        return True

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch it as Dagster does, its tags telling whose the code server is."""
        self._instance.add_run_tags(context.dagster_run.run_id, {CODE_SERVER: code_server()})
        super().launch_run(context)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Ask the code server that *run* was given to whether it is at it; one that does not answer may come back.

        Not of another machine, whose addresses differ, nor of a `fc-data dev`: it ends its runs itself, and its server
        forgets runs when code is reloaded.
        """
        if run.tags.get(CODE_SERVER) != Owner.current("").host or not self._has_begun(run):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        untyped: Any = self
        client = untyped._get_grpc_client_for_termination(run.run_id)
        try:
            if client is None or run.run_id in runs_below(client):
                return CheckRunHealthResult(WorkerStatus.RUNNING)
        except DagsterUserCodeUnreachableError:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "its code server was restarted, and does not run it")

    def _has_begun(self, run: dg.DagsterRun) -> bool:
        record = self._instance.get_run_record_by_id(run.run_id)
        return record is not None and time.time() - (record.start_time or time.time()) > UNKNOWN_SECONDS


class CodeServerRunLauncher(LeavesCommandLineRuns, _AskingCodeServerRunLauncher):
    """A process below the code server for each run. It ignores runs of the command line."""


def runs_below(client: DagsterGrpcClient) -> frozenset[str]:
    """The runs whose processes live below the code server; raises DagsterUserCodeUnreachableError without an answer."""
    return frozenset(deserialize_value(client.get_current_runs(), GetCurrentRunsResult).current_runs)
