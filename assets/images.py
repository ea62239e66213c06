"""`images`: one image per task, its build spec, its verifications, its digest."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import dagster as dg

from formulacode_dagster.environments.plan import plan_environment
from formulacode_dagster.environments.suite_files import first_suite
from formulacode_dagster.images.contents import Listing
from formulacode_dagster.images.repairs.attempts import Task
from formulacode_dagster.images.repairs.loop import build_until_it_holds
from formulacode_dagster.images.reproducing import keep_listings
from formulacode_dagster.images.submodules import submodule_mirrors
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.progress import listener
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.store.attempts import last_attempt, nearest_recipe, save_attempt, summary_of, vain_fixes
from formulacode_dagster.store.pull_requests import done_in
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .attempts import attempts_metadata
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
        interpreters, resolver = engine.interpreters(), containers.resolver()
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
            with run.database.transaction() as connection:
                neighbour = nearest_recipe(connection, pr.facts.repository_id, pr.facts.merged_at)
                vain = vain_fixes(connection, pr.facts.repository_id)
                before = last_attempt(connection, run.month, pr.key)
            image, log = build_until_it_holds(
                engine,
                Task(
                    pr=pr,
                    environment=environment,
                    mirror=mirror,
                    anchor_sha=anchor,
                    os_image=containers.os_image,
                    replan=lambda fixes: plan_environment(
                        mirror, pr, month=month, interpreters=interpreters, resolver=resolver, fixes=fixes
                    ),
                    submodules=partial(submodule_mirrors, cache),
                    suite=first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha),
                ),
                run_id=run.run_id,
                neighbour=neighbour,
                vain=vain,
                first_attempt=before + 1,
                keep=keep,
                keep_installed=keep_installed,
                force=config.force,
                progress=lambda line: listener().note(Stage.IMAGES, f"{item.name}: {line}"),
            )
            built = f"{image.size_bytes / 1e6:.0f} MB, {len(image.benchmarks)} benchmarks, attempt {image.attempts}"
            return Outcome(image, Cost(bytes=image.size_bytes), built, log=log)

        def keep(attempt: BuildAttempt) -> None:
            with run.database.transaction() as connection:
                save_attempt(connection, attempt)

        def keep_installed(found: Sequence[Listing]) -> None:
            with run.database.transaction() as connection:
                keep_listings(connection, found)

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
        with run.database.transaction() as connection:
            tries = summary_of(connection, run.month, run.run_id)
    return report(context, summary, engine=why, **attempts_metadata(tries))


def _inputs(environment: Environment, os_image: str, engine: str) -> str:
    return fingerprint(Stage.IMAGES, environment.model_dump(mode="json"), os_image, engine)
