"""Formats the error of a failed step for people."""

from __future__ import annotations

import dagster as dg


def failure_text(event: dg.DagsterEvent) -> str | None:
    """Return the step of *event* and its error; None if a check closed a gate: the check's report covers that."""
    data = event.step_failure_data
    if data.error is not None and data.error.cls_name == "DagsterAssetCheckFailedError":
        return None
    description = data.user_failure_data.description if data.user_failure_data else None
    error = data.error.cause if data.error and data.error.cause else data.error
    return f"{event.step_key}: {description or (error.message.strip() if error else 'failed')}"
