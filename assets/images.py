"""`images`: one image per task, its build spec, its verifications, its digest."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import dagster as dg

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images import checks as verdicts
from formulacode_dagster.building.images.missing import missing_images
from formulacode_dagster.building.images.stage import TaskBuilds, work_item
from formulacode_dagster.building.synthesis.asking import AgentDesk
from formulacode_dagster.building.synthesis.month import author_of, unasked
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import StageRun, StageSummary
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES
from formulacode_dagster.operating.store.attempts import AttemptSummary, summary_of
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.operating.store.views import RELATIONS
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.hub import HubResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .environments import environments
from .materialize import ItemConfig, report, stage_run
from .partitions import MONTHS
from .reproduction import reproduces
from .stage_asset import stage_asset

BUILDS_AT_ONCE = 2


@month_check(blocking=True)
def verifications_hold(month: JudgedMonth) -> Judgement:
    """Every image was verified in every way that this version of the code verifies images, and held.

    An image that fails one never becomes a row; a row of an earlier version, or one that was changed, can still fall
    short.
    """
    return verdicts.verifications_hold(month.done_rows(IMAGES, Stage.IMAGES))


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
    checks=[failures_within_budget, verifications_hold, reproduces],
)
def images(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    hub: HubResource,
    agents: AgentsResource,
) -> dg.MaterializeResult[Any]:
    """Build and verify an image for every environment."""
    with stage_run(context, postgres, images, config) as run:
        if not (run.options.is_partial or run.options.dry_run):
            # before hours of building: the dataset is written last
            hub.destination().require_write()
        engine, why = containers.engine_for(run.database, run.month)
        context.log.info(why)
        summary = build_images(run, mirrors, containers, engine, agents.desk(run))
        with run.database.transaction() as connection:
            tries = summary_of(connection, run.month, run.run_id)
    return report(context, summary, engine=why, **attempts_metadata(tries))


def build_images(
    run: StageRun,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    engine: Engine,
    desk: AgentDesk | None = None,
) -> StageSummary:
    """Build what is pending of the month, or this run's part of it."""
    os_image = containers.settings.os_image
    authors = partial(author_of, run, desk) if desk else None
    turn = containers.machine(run.database, engine, run.note).building
    builds = TaskBuilds(run, engine, mirrors.cache(), containers.resolver(turn), os_image, authors, turn)
    with run.database.transaction() as connection:
        environments_done = done_in(connection, run.month, Stage.ENVIRONMENTS)
        planned = ENVIRONMENTS.read_keys(connection, run.month, [pr.key for pr in environments_done])
    if not run.options.dry_run:
        engine.clean()

    items = [work_item(pr, planned[pr.key], os_image, engine.name) for pr in environments_done]
    gone = missing_images(run, engine, environments_done)
    threads = min(run.options.max_concurrency, BUILDS_AT_ONCE)
    if desk is not None:
        gone += unasked(run, desk.agent, environments_done)
        threads = max(threads, desk.at_once)
    return run_loop(run_items(run, items, in_thread(builds.build), IMAGES.save, concurrency=threads, redo=gone))


def attempts_metadata(summary: AttemptSummary) -> dict[str, Any]:
    """Attempts, their seconds, which rules won images, and where attempts were lost."""
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
