"""The stage `published_dataset`: build the month's records, release them once, and enter each task in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formulacode_dagster.models.errors import NotAsked, Rejection
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import RejectionReason, SkipReason
from formulacode_dagster.models.release import Release, Withdrawal
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, keep_nothing, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.acceptances import acceptances

from .destination import Destination
from .gate import release_gate
from .plan import plan
from .readiness import parts_left_out, require_tasks
from .records import month_records, withdrawn_items
from .tables import month_tables
from .task_tables import TaskRecords

RELEASE = "release"
"""The step that releases the month as a whole."""


@dataclass(frozen=True)
class PublishedDatasetTools:
    """Destination of the dataset."""

    destination: Destination


async def run(stage: StageRun, tools: PublishedDatasetTools) -> StageSummary:
    """Release the month once; other rows only as a revision, for which the options give a reason.

    Raises GateClosedError for a month without tasks if earlier ones had some, the ItemFailure of a failed release, and
    as `run_items`.
    """
    month, correction = Month.parse(stage.month), stage.options.correction
    with stage.database.transaction() as connection:
        records = month_records(connection, stage.month)
        withdrawn = withdrawn_items(connection, stage.month)
        accepted = acceptances(connection, stage.month)
        gate = release_gate(connection, stage.month, records)
        left_out = parts_left_out(connection, stage.month)
        if not stage.options.dry_run:
            require_tasks(connection, stage.month, len(records), accepted)
    tables = month_tables(list(records.values()), gate)
    if left_out and not stage.options.is_partial:
        stage.warn(f"{month} is not released: {left_out}")
    if stage.options.dry_run and not stage.options.is_partial:
        stage.note(f"dry run: {plan(tools.destination, month, tables, accepted, correction).text}")

    def release(_: WorkItem[None]) -> Outcome[Release]:
        if stage.options.is_partial:
            raise NotAsked(SkipReason.PARTIAL_RUN, "a run limited to some items is not released")
        if left_out:
            raise NotAsked(SkipReason.PARTIAL_RUN, left_out)
        released = tools.destination.release(month, tables, accepted, correction)
        return Outcome(released, detail=f"{released.tag} at {released.destination}, {released.tasks} tasks")

    # elsewhere the same rows still have to be released
    inputs = (tables.checksum, tools.destination.name, *([correction] if correction else []))
    whole = WorkItem(RELEASE, fingerprint(Stage.PUBLISHED_DATASET, *inputs), None)
    released = await run_items(stage, ItemKind.STEP, [whole], in_thread(release), artifacts.RELEASES.save)
    released.require_done()
    entered = await _enter_tasks(stage, {**records, **withdrawn}, is_released=released.count(ItemState.DONE) == 1)
    return entered.after(released).with_counts(records=len(records))


async def _enter_tasks(
    stage: StageRun, tasks: Mapping[str, TaskRecords | Withdrawal], *, is_released: bool
) -> StageSummary:
    """Record each task in the ledger, so that its history ends where it was released."""

    def enter(item: WorkItem[TaskRecords | Withdrawal]) -> Outcome[None]:
        if not is_released:
            raise NotAsked(SkipReason.PARTIAL_RUN, "a run limited to some items is not released")
        if isinstance(item.value, Withdrawal):
            raise Rejection(RejectionReason.WITHDRAWN, item.value.correction)
        return Outcome(detail=item.value.row.task_id)

    items = [
        WorkItem(name, fingerprint(Stage.PUBLISHED_DATASET, value.model_dump(mode="json")), value)
        for name, value in tasks.items()
    ]
    return await run_items(stage, ItemKind.PULL_REQUEST, items, in_thread(enter), keep_nothing)
