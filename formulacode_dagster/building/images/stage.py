"""The stage `images`: build and verify one image per task, with recipes of other commits, repair rules and agents."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from formulacode_dagster.building.engines.failures import DISK
from formulacode_dagster.building.engines.image_store import ImageStore
from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.protocol import Engine, keeps
from formulacode_dagster.building.images.repairs.attempts import Authors, Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.items import Cost, ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, RunRole, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES, MEASUREMENTS
from formulacode_dagster.operating.store.attempts import (
    agent_cost,
    book_attempt,
    contexts_of,
    ineffective_fixes,
    last_attempt,
    save_context,
)
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.sources.git.mirror import MirrorCache

from .recipes import context_of, declared_by, recipes_for
from .reproducibility import keep_listings
from .submodules import submodule_mirrors

BUILD_CONCURRENCY = 2
_TRIMMING = threading.Lock()


@dataclass(frozen=True)
class ImageTools:
    """Everything a build needs besides the pull request and its environment."""

    engine: Engine
    mirrors: MirrorCache
    resolver: Resolver
    os_image: str
    store: ImageStore
    """The engine's store, whose build cache is trimmed after each image."""
    cache_bytes: int | None
    """Limit of that cache; None for no limit."""
    authors: Authors | None = None
    """Authors of fixes if no rule applies; None without an agent."""
    turn: Turn = nullcontext
    """Excludes timings during builds and verifications."""


async def run(stage: StageRun, tools: ImageTools) -> StageSummary:
    """Build and verify the pending images of the month, or this run's part of them; raises as `run_items`.

    Images that are needed and that no store has are rebuilt.
    """
    with stage.database.transaction() as connection:
        prs = done_in(connection, stage.month, Stage.ENVIRONMENTS)
        planned = ENVIRONMENTS.read_keys(connection, stage.month, [pr.key for pr in prs])
    if not stage.options.dry_run:
        tools.engine.clean()
    items = [work_item(pr, planned[pr.key], tools.os_image, tools.engine.name) for pr in prs]
    redo = missing_images(stage, tools.engine, prs)
    threads = min(stage.options.concurrency, BUILD_CONCURRENCY)
    if tools.authors is not None:
        redo += tools.authors.unasked(prs)
        threads = max(threads, tools.authors.concurrency)
    build = in_thread(partial(_build, stage, tools))
    return await run_items(stage, ItemKind.PULL_REQUEST, items, build, IMAGES.save, concurrency=threads, redo=redo)


def _build(stage: StageRun, tools: ImageTools, item: WorkItem[tuple[PullRequest, Environment]]) -> Outcome[BuiltImage]:
    """Build the image of *item* until it passes, saving every attempt as it ends; raises as `build_until_it_holds`."""
    pr, environment = item.value
    task = _task_of(stage, tools, pr, environment)
    declared = declared_by(task.mirror, pr, environment)
    with stage.database.transaction() as connection:
        contexts = contexts_of(connection, pr.facts.repository_id)
        ineffective = ineffective_fixes(connection, pr.facts.repository_id)
        before = last_attempt(connection, stage.month, pr.key)
    agents: list[Cost] = []

    def keep(attempt: BuildAttempt) -> None:
        agents.append(agent_cost(attempt))
        with stage.database.transaction() as connection:
            book_attempt(connection, attempt, item.name)

    def keep_installed(listings: Sequence[Listing]) -> None:
        with stage.database.transaction() as connection:
            keep_listings(connection, listings)

    try:
        image, log = build_until_it_holds(
            tools.engine,
            task,
            run_id=stage.run_id,
            recipes=recipes_for(contexts, pr.change.base_sha, declared),
            author=tools.authors.author(pr, contexts) if tools.authors else None,
            ineffective=ineffective,
            first_attempt=before + 1,
            keep=keep,
            keep_installed=keep_installed,
            force=stage.options.force,
            progress=lambda line: stage.note(f"{item.name}: {line}"),
            turn=tools.turn,
        )
    except ItemFailure as failure:
        failure.cost += Cost.total(agents)
        is_full = isinstance(failure, SuspectedOutage) and failure.system == DISK
        _trim_cache(stage, tools, 0 if is_full else tools.cache_bytes)
        raise
    except OutsideSystemError as outage:
        if outage.system == DISK:
            # the stage is tried again: what other builds use at the moment stays
            _trim_cache(stage, tools, 0)
        raise
    _trim_cache(stage, tools, tools.cache_bytes)
    with stage.database.transaction() as connection:
        save_context(connection, context_of(image, task, declared))
    built = f"{image.size_bytes / 1e6:.0f} MB, {len(image.benchmarks)} benchmarks, attempt {image.attempts}"
    return Outcome(image, Cost.total((Cost(bytes=image.size_bytes), *agents)), built, log=log)


def _trim_cache(stage: StageRun, tools: ImageTools, most: int | None) -> None:
    """Bring the build cache to *most* bytes: a month of large locks fills a disk before housekeeping comes."""
    # two at once would each remove what is too much
    with _TRIMMING:
        trimmed = tools.store.trim_cache(most, dry_run=False)
    if trimmed.records:
        why = "the disk is full" if most == 0 else "beyond FC_BUILD_CACHE_GB"
        stage.note(f"removed {trimmed.freed / 1e9:.1f} GB of the build cache: {why}")


def _task_of(stage: StageRun, tools: ImageTools, pr: PullRequest, environment: Environment) -> Task:
    month = Month.parse(stage.month)
    mirror = tools.mirrors.ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
    anchor = mirror.anchor(pr.change.base_sha, month.start)
    for commit in (anchor, pr.change.base_sha):
        mirror.complete(commit)
    mirror.require(anchor, pr.change.base_sha)
    return Task(
        pr=pr,
        environment=environment,
        mirror=mirror,
        anchor_sha=anchor,
        os_image=tools.os_image,
        replan=lambda fixes: plan_environment(
            mirror,
            pr,
            month=month,
            interpreters=tools.engine.interpreters(),
            resolver=tools.resolver,
            fixes=fixes,
        ),
        submodules=partial(submodule_mirrors, tools.mirrors),
        suite=first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha),
    )


def work_item(
    pr: PullRequest, environment: Environment, os_image: str, engine: EngineName
) -> WorkItem[tuple[PullRequest, Environment]]:
    """*pr* as runs share it: those of one lock, and so of one `env` layer, are built by the same one."""
    lock = f"{pr.facts.repository} {environment.lock_sha256}"
    return WorkItem(pr.item, inputs_of(environment, os_image, engine), (pr, environment), shared_with=lock)


def inputs_of(environment: Environment, os_image: str, engine: EngineName) -> str:
    """Return the fingerprint of the inputs of *environment*'s image."""
    # of a license, nothing is built
    planned = environment.model_dump(mode="json", exclude={"license"})
    return fingerprint(Stage.IMAGES, planned, os_image, engine)


def missing_images(run: StageRun, engine: Engine, prs: Sequence[PullRequest]) -> list[str]:
    """Return items of *prs* whose image *run*, which leads the month or works by itself, rebuilds with *engine*.

    An image of another store is missing if no worker with access can come: no worker shares the run, or the stage that
    needed it found no living worker with it. Raises OutsideSystemError when the engine is gone.
    """
    if run.sharing is not None and run.sharing.part is not RunRole.LEADS:
        return []
    with run.database.transaction() as connection:
        keys = [pr.key for pr in prs]
        built = IMAGES.read_keys(connection, run.month, keys)
        measured = MEASUREMENTS.read_keys(connection, run.month, keys)
        ends = {(entry.stage, entry.item): entry for entry in entries_of(connection, run.month)}

    def is_needed(pr: PullRequest) -> bool:
        image = ends.get((Stage.IMAGES, pr.item))
        users = (ends.get((stage, pr.item)) for stage in (Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES))
        if any(_missed(image, user) for user in users):
            return True
        return pr.key not in measured and (run.sharing is None or keeps(engine, built[pr.key]))

    return [pr.item for pr in prs if pr.key in built and is_needed(pr) and not engine.exists(built[pr.key])]


def _missed(image: LedgerEntry | None, user: LedgerEntry | None) -> bool:
    """Return True if a later stage found the image missing, and none was built since."""
    if user is None or user.state is not ItemState.FAILED or user.reason != FailureKind.IMAGE_GONE:
        return False
    return not (image and image.finished_at and user.finished_at and image.finished_at > user.finished_at)
