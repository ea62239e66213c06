"""`images`: one image per task, its build spec, its verifications, its digest."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from formulacode_dagster.building.images import checks as verdicts
from formulacode_dagster.building.images.stage import run
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import IMAGES
from formulacode_dagster.operating.store.attempts import AttemptSummary, summary_of
from formulacode_dagster.operating.store.views import RELATIONS
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.hub import HubResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource
from resources.tools import image_tools

from .checks import JudgedMonth, failures_within_budget, month_check
from .environments import environments
from .materialize import AgentConfig, report, stage_run
from .partitions import MONTHS
from .reproduction import reproduces
from .stage_asset import stage_asset


@month_check(blocking=True)
def verifications_hold(month: JudgedMonth) -> CheckFinding:
    """Every image was verified in every way that this version of the code verifies images, and held.

    An image that fails one never becomes a row; a row of an earlier version, or one that was changed, can still fall
    short.
    """
    return verdicts.verifications_hold(month.done_rows(IMAGES, Stage.IMAGES))


@month_check(blocking=False)
def suites_load(month: JudgedMonth) -> CheckFinding:
    """Every image finds at least half of the benchmarks that its suite's files have.

    Often a system library is missing, which a repair rule could install; pull requests of the image are measured by
    the benchmarks that are left, or by other workloads.
    """
    return verdicts.suites_load(month.done_rows(IMAGES, Stage.IMAGES))


@stage_asset(
    Stage.IMAGES,
    deps=[environments],
    partitions_def=MONTHS,
    group_name="build",
    kinds={"docker", "postgres"},
    description="One row is the image of one task: the repository at the base commit, compiled, verified by the host.",
    columns=RELATIONS["images"].columns,
    pool="build",
    is_shared=True,
    checks=[failures_within_budget, verifications_hold, suites_load, reproduces],
)
def images(
    context: dg.AssetExecutionContext,
    config: AgentConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    hub: HubResource,
    agents: AgentsResource,
    registry: RegistryResource,
) -> dg.MaterializeResult[Any]:
    """Build and verify an image for every environment."""
    with stage_run(context, postgres, images, config) as stage:
        is_whole = not (stage.options.is_partial or stage.options.dry_run)
        if is_whole:
            # before hours of building: the dataset is written last
            hub.destination().require_write()
        engine, why = containers.engine_for(stage.database, stage.month)
        # folders of the process engine are never pushed
        if is_whole and engine.name is EngineName.DOCKER and (pushed_to := registry.client()):
            pushed_to.require_write()
        context.log.info(why)
        summary = run_loop(run(stage, image_tools(stage, mirrors, containers, agents.authors(stage))))
        with stage.database.transaction() as connection:
            tries = summary_of(connection, stage.month, stage.run_id)
    return report(context, summary, engine=why, **attempts_metadata(tries))


def attempts_metadata(summary: AttemptSummary) -> dict[str, Any]:
    """Attempts, their seconds, successful rules, and reasons for losses."""
    losses = [(loss.stage, loss.kind, loss.next_rule or "—", count) for loss, count in summary.losses]
    return {
        "attempts": summary.attempts,
        "attempt_seconds": round(summary.seconds, 1),
        "rules_applied": _table(("rule", "images"), summary.rules),
        "losses": _table(("stage", "kind", "tried next", "attempts"), losses),
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.MarkdownMetadataValue:
    if not rows:
        return dg.MetadataValue.md("none")
    lines = [columns, ["---"] * len(columns), *rows]
    return dg.MetadataValue.md("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))
