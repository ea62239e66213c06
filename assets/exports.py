"""`exports`: the tasks of a release as folders that harnesses run."""

from collections import Counter
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.columns import columns_of, postgres_type
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.releasing.exports import month as exporting
from formulacode_dagster.releasing.exports.stage import ExportTools, run
from resources.folders import TaskFoldersResource
from resources.hub import HubResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .partitions import MONTHS
from .published_dataset import published_dataset
from .stage_asset import stage_asset


@month_check(blocking=False)
def folders_hold_the_release(month: JudgedMonth, hub: HubResource, task_folders: TaskFoldersResource) -> CheckFinding:
    """Every folder matches its row of the newest release; none is missing, changed or left over."""
    rows = hub.released(Month.parse(month.key)).frame.iter_rows(named=True)
    folders = exporting.exported_folders(rows, task_folders.folder(month.key))
    return exporting.folders_hold_the_release(month.key, folders)


@stage_asset(
    Stage.EXPORTS,
    after=[published_dataset],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"json"},
    description="One row is a released task in the format of one harness: a folder, made only from its row.",
    columns=columns_of(exporting.ExportedFolder, type_of=lambda _, plain: postgres_type(plain)),
    checks=[failures_within_budget, folders_hold_the_release],
)
def exports(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    hub: HubResource,
    task_folders: TaskFoldersResource,
) -> dg.MaterializeResult[Any]:
    """Write the newest release of the month for every harness, and list it in `tasks.json`; a separate job."""
    with stage_run(context, postgres, exports, config) as stage:
        released, folder = hub.released(Month.parse(stage.month)), task_folders.folder(stage.month)
        summary = run_loop(run(stage, ExportTools(released, folder)))
        if config.dry_run:
            return report(context, summary)
        folders = exporting.settle(released.frame.iter_rows(named=True), folder)
    written = Counter(each.format for each in folders if each.is_current)
    return report(
        context,
        summary,
        rows=len(folders),
        release=released.tag,
        path=dg.MetadataValue.path(str(folder)),
        **{"dagster/uri": folder.absolute().as_uri()},
        **{f"tasks_for_{format_}": count for format_, count in written.items()},
    )
