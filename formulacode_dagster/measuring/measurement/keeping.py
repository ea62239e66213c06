"""What is kept of a task's measurement, and when: before its tests are run, which may end otherwise than the samples.

Nobody measures until it fits: what was timed is added to all measurements there ever were, whatever follows, and what
was only left untested is tested by the next attempt, not timed again.
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
class Measured:
    """What is kept of one pull request; of what is not faster, or wrong, no tests are run and none is replayed."""

    measurement: Measurement
    correctness: Correctness | None = None
    procedure: Procedure | None = None
    is_kept: bool = False
    """Whether the measurement is among all there ever were."""


def keep(connection: Connection, measured: Measured) -> Measured:
    """*measured* with its measurement, and what taking it again needs, among all there ever were.

    What people read of the task is not touched: that goes with how it ends.
    """
    if measured.is_kept:
        return measured
    row = measured.measurement
    if measured.procedure is not None:
        kept = put_blob(connection, PROCEDURE_BLOB, measured.procedure.to_json().encode())
        row = row.model_copy(update={"procedure_sha256": kept})
    return replace(measured, measurement=add_measurement(connection, row), is_kept=True)


def untested(connection: Connection, month: str, key: PullRequestKey, inputs: str) -> Measured | None:
    """The newest measurement of a task where it was of the same *inputs* and is faster: its tests are what it lacks."""
    row = newest_measurement(connection, month, key)
    # what broke off before its return values were compared lacks more
    if row is None or row.inputs != inputs or not row.is_faster or not row.returned or row.returning_other:
        return None
    return Measured(row, is_kept=True)


def save(connection: Connection, rows: Sequence[Measured]) -> None:
    """Keep *rows*, and make each the newest of its task."""
    kept = [keep(connection, row) for row in rows]
    MEASUREMENTS.save(connection, [row.measurement for row in kept])
    for row in kept:
        if row.correctness is not None:
            save_correctness(connection, row.correctness, measurement=row.measurement.attempt)
