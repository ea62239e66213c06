"""What the `images` stage does with one pull request: its mirror, recipes of other days, its attempts in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.environments.plan import plan_environment
from formulacode_dagster.building.environments.resolver import Resolver
from formulacode_dagster.building.images.repairs.attempts import Author, Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.operating.runner.work import Outcome, StageRun, WorkItem
from formulacode_dagster.operating.store.attempts import (
    agent_cost,
    book_attempt,
    contexts_of,
    ineffective_fixes,
    last_attempt,
    save_context,
)
from formulacode_dagster.sources.git.mirror import MirrorCache

from .recipes import context_of, declared_by, recipes_for
from .reproducibility import keep_listings
from .submodules import submodule_mirrors


@dataclass(frozen=True)
class TaskBuilds:
    """The builds of one run of the stage."""

    run: StageRun
    engine: Engine
    cache: MirrorCache
    resolver: Resolver
    os_image: str
    authors: Callable[[PullRequest, Sequence[StoredContext]], Author] | None = None
    """Who is asked where no rule knows more, for one pull request of a repository with these contexts."""
    turn: Turn = nullcontext
    """Holds off timings while something is built and verified."""

    def build(self, item: WorkItem[tuple[PullRequest, Environment]]) -> Outcome[BuiltImage]:
        """Build the image of *item* until it holds, every attempt kept as it ends; raises as `build_until_it_holds`."""
        pr, environment = item.value
        month = Month.parse(self.run.month)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
        anchor = mirror.anchor(pr.change.base_sha, month.start)
        for commit in (anchor, pr.change.base_sha):
            mirror.complete(commit)
        task = Task(
            pr=pr,
            environment=environment,
            mirror=mirror,
            anchor_sha=anchor,
            os_image=self.os_image,
            replan=lambda fixes: plan_environment(
                mirror,
                pr,
                month=month,
                interpreters=self.engine.interpreters(),
                resolver=self.resolver,
                fixes=fixes,
            ),
            submodules=partial(submodule_mirrors, self.cache),
            suite=first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha),
        )
        declared = declared_by(mirror, pr, environment)
        with self.run.database.transaction() as connection:
            contexts = contexts_of(connection, pr.facts.repository_id)
            ineffective = ineffective_fixes(connection, pr.facts.repository_id)
            before = last_attempt(connection, self.run.month, pr.key)
        agents: list[Cost] = []

        def keep(attempt: BuildAttempt) -> None:
            agents.append(agent_cost(attempt))
            self._keep(attempt, item.name)

        try:
            image, log = build_until_it_holds(
                self.engine,
                task,
                run_id=self.run.run_id,
                recipes=recipes_for(contexts, pr.change.base_sha, declared),
                author=self.authors(pr, contexts) if self.authors else None,
                ineffective=ineffective,
                first_attempt=before + 1,
                keep=keep,
                keep_installed=self._keep_installed,
                force=self.run.options.force,
                progress=lambda line: listener().note(Stage.IMAGES, f"{item.name}: {line}"),
                turn=self.turn,
            )
        except ItemFailure as failure:
            failure.cost += Cost.total(agents)
            raise
        with self.run.database.transaction() as connection:
            save_context(connection, context_of(image, task, declared))
        built = f"{image.size_bytes / 1e6:.0f} MB, {len(image.benchmarks)} benchmarks, attempt {image.attempts}"
        return Outcome(image, Cost.total((Cost(bytes=image.size_bytes), *agents)), built, log=log)

    def _keep(self, attempt: BuildAttempt, item: str) -> None:
        with self.run.database.transaction() as connection:
            book_attempt(connection, attempt, item)

    def _keep_installed(self, listings: Sequence[Listing]) -> None:
        with self.run.database.transaction() as connection:
            keep_listings(connection, listings)


def work_item(
    pr: PullRequest, environment: Environment, os_image: str, engine: EngineName
) -> WorkItem[tuple[PullRequest, Environment]]:
    """*pr* as runs share it: those of one lock, and so of one `env` layer, are built by the same one."""
    lock = f"{pr.facts.repository} {environment.lock_sha256}"
    return WorkItem(pr.item, inputs_of(environment, os_image, engine), (pr, environment), shared_with=lock)


def inputs_of(environment: Environment, os_image: str, engine: EngineName) -> str:
    """Fingerprint of what the image of *environment* depends on."""
    # of a license, nothing is built
    planned = environment.model_dump(mode="json", exclude={"license"})
    return fingerprint(Stage.IMAGES, planned, os_image, engine)
