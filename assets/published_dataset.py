"""`published_dataset`: the month's tasks as Parquet, card and tag, on the Hub or in a folder."""

from typing import Any

import dagster as dg

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.errors import NotAsked, Rejection
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import RejectionReason, SkipReason
from formulacode_dagster.models.release import Release, Withdrawal
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.acceptances import acceptances
from formulacode_dagster.releasing.release import checks as verdicts
from formulacode_dagster.releasing.release.dataset import DATASET_COLUMNS
from formulacode_dagster.releasing.release.plan import plan
from formulacode_dagster.releasing.release.readiness import parts_left_out, require_tasks
from formulacode_dagster.releasing.release.records import month_records, withdrawn_items
from formulacode_dagster.releasing.release.tables import month_tables
from formulacode_dagster.releasing.release.task_tables import TaskRecords
from resources.hub import HubResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, keep_nothing, report, stage_run
from .measurements import measurements
from .partitions import MONTHS
from .problem_statements import problem_statements
from .published_images import published_images
from .stage_asset import MONTHLY, stage_asset

RELEASE = "release"


@month_check(blocking=True)
def reads_back_equal(month: JudgedMonth) -> Judgement:
    """The month's rows read back from its tags are the ones written."""
    return verdicts.reads_back_equal(month.key, month.rows(artifacts.RELEASES))


@month_check(blocking=True)
def schema_and_ids_stable(month: JudgedMonth) -> Judgement:
    """No column of an earlier release is changed or gone; no task id appears twice."""
    releases = _all_releases(month)
    ours, others = ([row for row in releases if (row.month == month.key) is is_ours] for is_ours in (True, False))
    return verdicts.schema_and_ids_stable(month.key, ours, others)


@month_check(blocking=True)
def released_tags_untouched(month: JudgedMonth, hub: HubResource) -> Judgement:
    """Every released tag still points to the revision it was released with."""
    destination = hub.destination()
    here = [row for row in _all_releases(month) if row.destination == destination.name]
    return verdicts.released_tags_untouched(here, destination.tags() if here else {})


def _all_releases(month: JudgedMonth) -> list[Release]:
    with month.database.transaction() as connection:
        return artifacts.RELEASES.read_all(connection)


@stage_asset(
    Stage.PUBLISHED_DATASET,
    deps=[problem_statements, measurements, published_images],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"huggingface", "parquet"},
    description="One row is a task, measured to be faster, ready to be solved; under a tag that never changes.",
    columns=DATASET_COLUMNS,
    checks=[failures_within_budget, reads_back_equal, schema_and_ids_stable, released_tags_untouched],
    freshness=MONTHLY,
)
def published_dataset(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource, hub: HubResource
) -> dg.MaterializeResult[Any]:
    """Build the month's records and release them once; others only as a revision, for which a person gives a reason."""
    with stage_run(context, postgres, published_dataset, config) as run:
        month = Month.parse(run.month)
        with run.database.transaction() as connection:
            records = month_records(connection, run.month)
            withdrawn = withdrawn_items(connection, run.month)
            accepted = acceptances(connection, run.month)
            left_out = parts_left_out(connection, run.month)
            if not config.dry_run:
                require_tasks(connection, run.month, len(records), accepted)
        tables = month_tables(list(records.values()))
        if run.options.dry_run and not run.options.is_partial:
            planned = plan(hub.destination(), month, tables, accepted, config.correction)
            context.log.info("dry run: %s", planned.text)

        def release(_: WorkItem[None]) -> Outcome[Release]:
            if run.options.is_partial:
                raise NotAsked(SkipReason.PARTIAL_RUN, "a run limited to some items is not released")
            if left_out:
                raise NotAsked(SkipReason.PARTIAL_RUN, left_out)
            released = hub.destination().release(month, tables, accepted, config.correction)
            return Outcome(released, detail=f"{released.tag} at {released.destination}, {released.tasks} tasks")

        inputs = (tables.checksum, *([config.correction] if config.correction else []))
        whole = WorkItem(RELEASE, fingerprint(Stage.PUBLISHED_DATASET, *inputs), None, always=True)
        released = run_loop(run_items(run, [whole], in_thread(release), artifacts.RELEASES.save, prune=False))
        released.require_done()
        summary = _enter_tasks(run, records, withdrawn, released)
        with run.database.transaction() as connection:
            newest = verdicts.newest_of(artifacts.RELEASES.read(connection, run.month)).get(run.month)
    where = newest.model_dump(include={"destination", "tag", "revision", "difference"}) if newest else {}
    return report(context, released, summary, rows=len(records), **where)


def _enter_tasks(
    run: StageRun, records: dict[str, TaskRecords], withdrawn: dict[str, Withdrawal], released: StageSummary
) -> StageSummary:
    """Enter each task in the ledger, so that its story ends where it was released."""
    is_released = released.count(ItemState.DONE) == 1

    def enter(item: WorkItem[TaskRecords | Withdrawal]) -> Outcome[None]:
        if not is_released:
            raise NotAsked(SkipReason.PARTIAL_RUN, "a run limited to some items is not released")
        if isinstance(item.value, Withdrawal):
            raise Rejection(RejectionReason.WITHDRAWN, item.value.correction)
        return Outcome(detail=item.value.row.task_id)

    entered: dict[str, TaskRecords | Withdrawal] = {**records, **withdrawn}
    items = [
        WorkItem(name, fingerprint(Stage.PUBLISHED_DATASET, value.model_dump(mode="json")), value)
        for name, value in entered.items()
    ]
    return run_loop(run_items(run, items, in_thread(enter), keep_nothing, besides=[RELEASE]))
