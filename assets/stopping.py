"""How a Dagster step stops with its run: Ctrl-C, SIGTERM, *Terminate* in the UI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard

from .partitions import StepContext


@contextmanager
def stoppable(
    context: StepContext,
) -> Iterator[None]:
    """The frame around a step: a signal ends it in order, once, and marks the run as being canceled."""
    try:
        with signals_heard() as request, interrupted_once(Stopped):
            request.raise_if_requested()
            yield
    except (Stopped, dg.DagsterExecutionInterruptedError) as stopped:
        run = context.instance.get_run_by_id(context.run.run_id)
        if run is not None and run.status is not dg.DagsterRunStatus.CANCELING:
            context.instance.report_run_canceling(run, "The run was asked to stop.")
        # an interrupt would follow the asset's RetryPolicy: Dagster would start the step again
        raise dg.Failure("stopped; finished items are kept", allow_retries=False) from stopped
