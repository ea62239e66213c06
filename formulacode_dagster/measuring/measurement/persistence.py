"""Persistence of measurements: stored before the tests of the task run, which may fail.

Every measurement is appended to the history, whatever follows, so nobody can measure until it fits; a task that only
lacks its tests is tested by the next attempt, not timed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.measurement import Measurement
from formulacode_dagster.operating.store.artifacts import MEASUREMENTS, PullRequestKey
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.measurements import add_measurement, newest_measurement, save_correctness

from .procedure import PROCEDURE_BLOB, Procedure


@dataclass(frozen=True)
class MeasuredPullRequest:
    """Stored results of one pull request; a patch that is not faster, or is wrong, is neither tested nor replayed."""

    measurement: Measurement
    correctness: Correctness | None = None
    procedure: Procedure | None = None
    is_kept: bool = False
    """True if the measurement is in the history."""


def keep(connection: Connection, measured: MeasuredPullRequest) -> MeasuredPullRequest:
    """Return *measured* with its measurement, and the procedure for repeating it, added to the history.

    The visible row of the task does not change: it follows from how the item ends.
    """
    if measured.is_kept:
        return measured
    row = measured.measurement
    if measured.procedure is not None:
        kept = put_blob(connection, PROCEDURE_BLOB, measured.procedure.to_json().encode())
        row = row.model_copy(update={"procedure_sha256": kept})
    return replace(measured, measurement=add_measurement(connection, row), is_kept=True)


def untested(connection: Connection, month: str, key: PullRequestKey, inputs: str) -> MeasuredPullRequest | None:
    """Return the newest measurement of a task if it has the same *inputs* and is faster, so that only tests are
    missing.
    """
    row = newest_measurement(connection, month, key)
    # a measurement without compared return values lacks more than tests
    if row is None or row.inputs != inputs or not row.is_faster or not row.returned or row.returning_other:
        return None
    return MeasuredPullRequest(row, is_kept=True)


def save(connection: Connection, rows: Sequence[MeasuredPullRequest]) -> None:
    """Keep *rows*, and make each the newest of its task."""
    kept = [keep(connection, row) for row in rows]
    MEASUREMENTS.save(connection, [row.measurement for row in kept])
    for row in kept:
        if row.correctness is not None:
            save_correctness(connection, row.correctness, measurement=row.measurement.attempt)
