"""`replays`: released tasks measured again, only from their rows and images."""

from collections import Counter
from typing import Any

import dagster as dg

from formulacode_dagster.measuring.measurement.cores import leased_cores
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import Stage, repository_of
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import ReplayVerdict, standing
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.measurements import replays_of
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.releasing.replays import verdict
from formulacode_dagster.releasing.replays.released import tasks_of
from formulacode_dagster.releasing.replays.stage import ReplayTools, run
from resources.containers import ContainersResource
from resources.hub import HubResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run
from .partitions import MONTHS
from .published_dataset import published_dataset
from .stage_asset import WITHIN_A_MONTH, stage_asset


@month_check(blocking=False)
def tasks_are_confirmed(month: JudgedMonth) -> CheckFinding:
    """At least 95 % of the tasks that could be replayed are confirmed by each of their replays."""
    with month.database.transaction() as connection:
        return verdict.tasks_are_confirmed(replays_of(connection, month.key))


@stage_asset(
    Stage.REPLAYS,
    after=[published_dataset],
    partitions_def=MONTHS,
    group_name="measure",
    kinds={"asv", "docker", "postgres"},
    description="One row is a released task measured again, only from its row and its image, on any machine.",
    columns=RELATIONS["replays"].columns,
    pool="measure",
    checks=[failures_within_budget, tasks_are_confirmed],
    freshness=WITHIN_A_MONTH,
)
def replays(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    hub: HubResource,
    registry: RegistryResource,
    containers: ContainersResource,
) -> dg.MaterializeResult[Any]:
    """Measure the newest release of the month again; a separate job, since it is for other machines and days."""
    with stage_run(context, postgres, replays, config) as stage:
        destination, released = hub.destination(), hub.released(Month.parse(stage.month))
        tasks = list(tasks_of(released))
        engine, why = containers.engine_for_repositories(
            {repository_of(task.item) for task in tasks},
            [EngineName.DOCKER] if any(task.image_name for task in tasks) else [],
        )
        cores = leased_cores(containers.machine(stage.database, engine, stage.note))
        summary = run_loop(run(stage, ReplayTools(engine, registry.puller(), destination.name, released, cores)))
        with stage.database.transaction() as connection:
            made = replays_of(connection, stage.month)
    counts = Counter(standing(replay.verdict for replay in rows) for rows in made.values())
    return report(
        context,
        summary,
        rows=sum(map(len, made.values())),
        engine=why,
        release=released.tag,
        **{f"tasks_{each.value}": counts[each] for each in ReplayVerdict},
    )
