"""The housekeeping job and its schedule: leftovers of dead runs, unneeded images, our build cache."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from formulacode_dagster.building.housekeeping.attempts import prune_attempts
from formulacode_dagster.building.housekeeping.cleanup import CleanupReport, clean_up_all
from formulacode_dagster.building.housekeeping.report import Report
from formulacode_dagster.building.housekeeping.shared_stages import close_deserted_stages
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.sources.git.repacking import repack_mirrors
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .ended_runs import runs_over
from .maintenance_schedules import one_at_a_time
from .run_history import prune_runs

SHOWN = 200


class HousekeepingConfig(dg.Config):
    """Started by hand it is a dry run by default; the schedule removes."""

    dry_run: bool = Field(default=True, description="dry run: only list removals")


# in no pool: stages build for hours, just when disks fill, and their files are young, in use or locked
@dg.op(description="Removes unneeded data, and reports each removal with reason and bytes.")
def tidy_up(
    context: dg.OpExecutionContext,
    config: HousekeepingConfig,
    postgres: PostgresResource,
    containers: ContainersResource,
    mirrors: MirrorsResource,
) -> dg.Output[None]:
    """Clean up every image store; the output's metadata report the result."""
    try:
        budgets = containers.budgets
        now, settings = datetime.now(tz=UTC), postgres.settings
        pruned = prune_attempts(postgres.database(), settings.attempts_days, now=now, dry_run=config.dry_run)
        repacked = repack_mirrors(mirrors.settings.mirrors_root, dry_run=config.dry_run)
        deserted = close_deserted_stages(postgres.database(), dry_run=config.dry_run)
        stores = containers.image_stores(runs_over(context.instance, postgres.database(), now=now))
        done = clean_up_all(postgres.database(), stores, budgets, dry_run=config.dry_run)
        # last, since they describe containers
        runs = prune_runs(context.instance, settings.runs_days, now=now, dry_run=config.dry_run)
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    for part in (pruned, runs, repacked):
        context.log.info(part.summary)
    for report in done:
        context.log.info(report.summary)
        if over := report.over(budgets):
            context.log.warning(
                f"{report.where}: images are {over / 1e9:.1f} GB over FC_IMAGES_GB; "
                f"unfinished months need {report.needed_bytes / 1e9:.1f} GB"
            )
    figures = {
        "attempts_removed": pruned.attempts,
        "logs_removed": pruned.logs,
        "log_bytes_freed": pruned.bytes,
        "runs_removed": runs.runs,
        "mirrors_repacked": len(repacked.repacked),
        "mirror_bytes_freed": repacked.freed,
        "stages_that_nobody_leads": len(deserted),
    }
    told = _told([pruned, runs, repacked, *done])
    return dg.Output(None, metadata={"dry_run": config.dry_run, **_of_images(done), **figures, **told})


def _of_images(done: Sequence[CleanupReport]) -> dict[str, Any]:
    return {
        "bytes_freed": sum(report.freed for report in done),
        "containers_and_folders_of_dead_runs": sum(len(report.leftovers) for report in done),
        "images_removed": sum(len(report.removed) for report in done),
        "images_kept": sum(report.images_kept for report in done),
        "image_bytes": sum(report.image_bytes for report in done),
        "image_bytes_needed": sum(report.needed_bytes for report in done),
        "build_cache_bytes": sum(report.cache.bytes_after for report in done),
        "images_of_others": sum(report.foreign_images for report in done),
    }


def _told(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the removals, a row each, and a line for each place."""
    gone = [
        dg.TableRecord({"where": report.where, "what": name, "why": why, "bytes": size})
        for report in reports
        for name, why, size in report.gone()
    ]
    summary = dg.MetadataValue.md("\n".join(f"* {report.summary}" for report in reports))
    return {"summary": summary, **({"removed": dg.MetadataValue.table(gone[:SHOWN])} if gone else {})}


@dg.job(
    description="Housekeeping: leftovers of killed runs, images and build cache over budget, old attempts and runs.",
    executor_def=dg.in_process_executor,
)
def housekeeping() -> None:
    """Tidy up."""
    tidy_up()


HOUSEKEEPING_SCHEDULE = one_at_a_time(
    "housekeeping_daily",
    housekeeping.name,
    "30 4 * * *",
    run_config={"ops": {"tidy_up": {"config": {"dry_run": False}}}},
    description="Every day at 04:30 UTC; removes nothing while images and build cache are within their budgets.",
)
