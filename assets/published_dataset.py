"""`published_dataset`: the month's tasks as Parquet, card and tag, on the Hub or in a folder."""

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.releasing.dataset import checks as verdicts
from formulacode_dagster.releasing.dataset.parquet import DATASET_COLUMNS
from formulacode_dagster.releasing.dataset.stage import PublishedDatasetTools, run
from resources.hub import HubResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .gradings import gradings
from .materialize import ReleaseConfig, report, stage_run
from .measurements import measurements
from .partitions import MONTHS
from .problem_statements import problem_statements
from .published_images import published_images
from .stage_asset import MONTHLY, stage_asset


@month_check(blocking=True)
def reads_back_equal(month: JudgedMonth) -> CheckFinding:
    """The month's rows read back from its tags are the ones written."""
    return verdicts.reads_back_equal(month.key, month.rows(artifacts.RELEASES))


@month_check(blocking=True)
def schema_and_ids_stable(month: JudgedMonth) -> CheckFinding:
    """No column of an earlier release is changed or gone; no task id appears twice."""
    releases = _all_releases(month)
    ours, others = ([row for row in releases if (row.month == month.key) is is_ours] for is_ours in (True, False))
    return verdicts.schema_and_ids_stable(month.key, ours, others)


@month_check(blocking=True)
def released_tags_untouched(month: JudgedMonth, hub: HubResource) -> CheckFinding:
    """Every released tag still points to the revision it was released with."""
    destination = hub.destination()
    here = [row for row in _all_releases(month) if row.destination == destination.name]
    return verdicts.released_tags_untouched(here, destination.tags() if here else {})


def _all_releases(month: JudgedMonth) -> list[Release]:
    with month.database.transaction() as connection:
        return artifacts.RELEASES.read_all(connection)


def release_uri(destination: str, tag: str) -> str:
    """Return where the release of *tag* is, as programs open it: `hf://datasets/owner/name@tag`, or a folder."""
    if destination.startswith("hub:"):
        return f"hf://datasets/{destination.removeprefix('hub:')}@{tag}"
    return Path(destination).absolute().as_uri()


@stage_asset(
    Stage.PUBLISHED_DATASET,
    deps=[problem_statements, measurements, published_images, gradings],
    partitions_def=MONTHS,
    group_name="release",
    kinds={"huggingface", "parquet"},
    description="One row is a task, measured to be faster, ready to be solved; under a tag that never changes.",
    columns=DATASET_COLUMNS,
    checks=[failures_within_budget, reads_back_equal, schema_and_ids_stable, released_tags_untouched],
    freshness=MONTHLY,
)
def published_dataset(
    context: dg.AssetExecutionContext, config: ReleaseConfig, postgres: PostgresResource, hub: HubResource
) -> dg.MaterializeResult[Any]:
    """Build the month's records and release them once; others only as a revision, for which a person gives a reason."""
    with stage_run(context, postgres, published_dataset, config) as stage:
        destination = hub.destination()
        summary = run_loop(run(stage, PublishedDatasetTools(destination)))
        with stage.database.transaction() as connection:
            releases = artifacts.RELEASES.read(connection, stage.month)
        here = [release for release in releases if release.destination == destination.name]
        newest = verdicts.newest_of(here).get(stage.month)
    where = newest.model_dump(include={"destination", "tag", "revision", "difference"}) if newest else {}
    if newest:
        where["dagster/uri"] = release_uri(newest.destination, newest.tag)
    return report(context, summary, rows=summary.counts["records"], **where)
