"""`images`: one image per task, its build spec, its verifications, its digest."""

import asyncio
from typing import Any

import dagster as dg

from formulacode_dagster.environments.suite_files import first_suite
from formulacode_dagster.images.build import build_task_image
from formulacode_dagster.images.spec import plan_build
from formulacode_dagster.images.submodules import submodule_mirrors
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.progress import listener
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.store.pull_requests import done_in
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .materialize import ItemConfig, report, stage_asset, stage_run

BUILDS_AT_ONCE = 2


@stage_asset(
    Stage.IMAGES,
    group="build",
    kinds={"docker", "postgres"},
    description="One row is the image of one task: the repository at the base commit, compiled, verified by the host.",
    columns={
        "engine": ("text", "docker or process"),
        "tag": ("text", "names all that varies inside"),
        "digest": ("text", "content digest"),
        "size_bytes": ("bigint", "size of the image"),
        "build_seconds": ("double precision", "seconds the build took"),
        "verifications": ("jsonb", "facts established by the host"),
    },
    pool="build",
)
def images(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
) -> dg.MaterializeResult[Any]:
    """Build and verify an image for every environment."""
    with stage_run(context, postgres, Stage.IMAGES, config) as run:
        engine, why = containers.chosen()
        context.log.info(why)
        month = Month.parse(run.month)
        cache = mirrors.cache()
        with run.database.transaction() as connection:
            found = done_in(connection, run.month, Stage.ENVIRONMENTS)
            keys = [pr.key for pr in found]
            planned = ENVIRONMENTS.read_keys(connection, run.month, keys)
            built = IMAGES.read_keys(connection, run.month, keys)
            measured = MEASUREMENTS.read_keys(connection, run.month, keys)
        if not config.dry_run:
            engine.clean()

        def build(item: WorkItem[tuple[PullRequest, Environment]]) -> Outcome[BuiltImage]:
            pr, environment = item.value
            mirror = cache.ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
            anchor = mirror.anchor(pr.change.base_sha, month.start)
            for commit in (anchor, pr.change.base_sha):
                mirror.complete(commit)
            spec = plan_build(pr=pr, environment=environment, anchor_sha=anchor, os_image=containers.os_image)
            modules = submodule_mirrors(cache, spec.submodules)
            image, log = build_task_image(
                engine,
                spec,
                mirror=mirror.path,
                submodules={name: one.path for name, one in modules.items()},
                pr=pr,
                run_id=run.run_id,
                suite=first_suite(mirror, pr, spec.benchmark_dir, suite_sha=environment.suite_sha),
                force=config.force,
                progress=lambda line: listener().note(Stage.IMAGES, f"{item.name}: {line}"),
            )
            built = f"{image.size_bytes / 1e6:.0f} MB, {len(image.benchmarks)} benchmarks"
            return Outcome(image, Cost(bytes=image.size_bytes), built, log=log)

        items = [
            WorkItem(pr.item, _inputs(planned[pr.key], containers.os_image, engine.name), (pr, planned[pr.key]))
            for pr in found
        ]
        threads = min(config.max_concurrency, BUILDS_AT_ONCE)
        # an image that was pruned before it was measured is built again
        gone = [
            pr.item for pr in found if pr.key in built.keys() - measured.keys() and not engine.exists(built[pr.key])
        ]
        summary = asyncio.run(run_items(run, items, in_thread(build), IMAGES.save, concurrency=threads, redo=gone))
    return report(context, summary, engine=why)


def _inputs(environment: Environment, os_image: str, engine: str) -> str:
    return fingerprint(Stage.IMAGES, environment.model_dump(mode="json"), os_image, engine)
