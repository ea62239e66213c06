"""How a Dagster step stops with its run (Ctrl-C, SIGTERM, *Terminate* in the UI), and when an outside system fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard
from formulacode_dagster.operating.runner.progress import duration, listener
from resources.settings import read_settings

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


def retry_or_failure(context: StepContext, error: OutsideSystemError) -> dg.RetryRequested | dg.Failure:
    """Return what Dagster is to raise for *error*: one retry after FC_RETRY_SECONDS, and announce it; or a failure."""
    failure = dg.Failure(description=str(error), metadata={"system": error.system})
    delay = read_settings().retry_seconds
    if not delay or context.retry_number:
        return failure
    listener().announce(f"{error}; trying once more in {duration(delay)}")
    # no RetryPolicy: its delay would have to be known when definitions load
    return dg.RetryRequested(max_retries=1, seconds_to_wait=delay)
