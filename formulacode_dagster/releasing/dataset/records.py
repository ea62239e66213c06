"""The records of a month's tasks, composed from the rows of earlier stages."""

from __future__ import annotations

from sqlalchemy import Connection

from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.release import Withdrawal
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.acceptances import reviews_of, withdrawals
from formulacode_dagster.operating.store.blobs import get_blob
from formulacode_dagster.operating.store.ledger import items_in_state
from formulacode_dagster.operating.store.measurements import newest_gradings, replays_of
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of

from .task_tables import TaskRecords
from .tasks import build_task_record
from .wide import procedure_record, task_records


def month_records(connection: Connection, month: str) -> dict[str, TaskRecords]:
    """Return the records of the tasks of *month* to release, by item: without those that no grader can grade."""
    ungradable = {
        item
        for state in (ItemState.REJECTED, ItemState.FAILED)
        for item in items_in_state(connection, month, Stage.GRADINGS, state)
    }
    return {item: record for item, record in graded_records(connection, month).items() if item not in ungradable}


def graded_records(connection: Connection, month: str) -> dict[str, TaskRecords]:
    """Return the records of the pull requests of *month* with a statement and a real speed-up, by item.

    Withdrawn tasks are left out.
    """
    stated = set(items_in_state(connection, month, Stage.PROBLEM_STATEMENTS, ItemState.DONE))
    withdrawn = withdrawals(connection, month)
    measured_here = done_in(connection, month, Stage.MEASUREMENTS)
    prs = [pr for pr in measured_here if pr.item in stated and pr.task_id not in withdrawn]
    keys = [pr.key for pr in prs]
    classified = artifacts.CLASSIFICATIONS.read_keys(connection, month, keys)
    statements = artifacts.PROBLEM_STATEMENTS.read_keys(connection, month, keys)
    planned = artifacts.ENVIRONMENTS.read_keys(connection, month, keys)
    measured = artifacts.MEASUREMENTS.read_keys(connection, month, keys)
    tested = artifacts.CORRECTNESS.read_keys(connection, month, keys)
    built = artifacts.IMAGES.read_keys(connection, month, keys)
    pushed = set(items_in_state(connection, month, Stage.PUBLISHED_IMAGES, ItemState.DONE))
    published = artifacts.PUBLISHED_IMAGES.read_keys(connection, month, [pr.key for pr in prs if pr.item in pushed])
    gradings = newest_gradings(connection, month)
    replayed = replays_of(connection, month)
    reviewed = reviews_of(connection, month)
    profiled = artifacts.PROFILES.read_keys(connection, month, keys)
    records: dict[str, TaskRecords] = {}
    for pr in prs:
        measurement, replays = measured[pr.key], replayed.get(pr.task_id, ())
        row = build_task_record(
            pr=pr,
            patch=patch_of(connection, pr),
            classification=classified[pr.key],
            statement=statements[pr.key],
            environment=planned[pr.key],
            measurement=measurement,
            correctness=tested[pr.key],
            image=built[pr.key],
            published=published.get(pr.key),
            procedure=_procedure(connection, measurement.procedure_sha256),
            replays=replays,
            grading=gradings.get(pr.key),
            reviews=reviewed.get(pr.task_id, ()),
        )
        how = procedure_record(row, measurement, built[pr.key], statements[pr.key])
        records[pr.item] = task_records(row, measurement, tested[pr.key], replays, profiled.get(pr.key), how)
    return records


def withdrawn_items(connection: Connection, month: str) -> dict[str, Withdrawal]:
    """The withdrawals of *month*, by item."""
    withdrawn = withdrawals(connection, month)
    prs = done_in(connection, month, Stage.MEASUREMENTS) if withdrawn else ()
    return {pr.item: withdrawn[pr.task_id] for pr in prs if pr.task_id in withdrawn}


def _procedure(connection: Connection, sha256: str) -> str | None:
    return get_blob(connection, sha256).decode() if sha256 else None
