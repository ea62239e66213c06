"""What the `environments` stage does with one pull request: its plan, and where that has no lock, who may know one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.environments.plan import plan_environment, unlocked_environment
from formulacode_dagster.building.environments.resolver import Resolver
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.work import Outcome, StageRun, WorkItem
from formulacode_dagster.operating.store.attempts import agent_cost, book_attempt, contexts_of, last_attempt
from formulacode_dagster.sources.git.mirror import MirrorCache

from .recipes import declared_by, lock_recipes_for
from .repairs.attempts import PLAN, AttemptResult, Attempts, Author, Recipe, Task

WITHOUT_LOCK = frozenset({FailureKind.LOCK, FailureKind.TIMEOUT})
"""Failures of a plan that other bounds, requirements, or another interpreter may cure."""


LOCKED = "locked"
"""Stage of an attempt at a lock that found one."""


@dataclass
class LockAttempts(Attempts):
    """Attempts at a lock alone, where the declarations have none: nothing is built of what they find."""

    made_in: ClassVar[Stage] = Stage.ENVIRONMENTS

    def begin(self, failure: ItemFailure) -> AttemptResult:
        """Keep that the declarations failed as *failure* says."""
        spec, log = self._spec(self.task.environment), failure.log or failure.log_tail
        result = AttemptResult(self.task.environment, spec, None, failure, PLAN, log)
        self._keep(result, "", Rung.RULES, datetime.now(tz=UTC), 0.0)
        return result

    def _built(self, environment: Environment, spec: BuildSpec) -> AttemptResult:
        return AttemptResult(environment, spec, stage=LOCKED)


def lock_otherwise(
    attempts: LockAttempts, failure: ItemFailure, *, recipes: Sequence[Recipe] = (), author: Author | None = None
) -> Environment:
    """The environment by the first of *recipes*, or by *author*, that has a lock where the declarations have none.

    *failure* is how these failed. It, and every attempt, is kept. Raises the last ItemFailure; OutsideSystemError.
    """
    if not recipes and author is None:
        raise failure
    latest = attempts.begin(failure)
    for recipe in recipes:
        tried = attempts.make(recipe.fixes, recipe.rule, recipe.rung)
        if tried.failure is None:
            return tried.environment
    if author is not None:
        latest = attempts.by_agent(author, latest)
    if latest.failure is not None:
        raise latest.failure
    return latest.environment


@dataclass(frozen=True)
class TaskPlans:
    """The plans of one run of the stage."""

    run: StageRun
    engine: Engine
    cache: MirrorCache
    resolver: Resolver
    os_image: str
    authors: Callable[[PullRequest, Sequence[StoredContext]], Author] | None = None
    """Who is asked where there is no lock, for one pull request of a repository with these contexts."""

    def plan(self, item: WorkItem[PullRequest]) -> Outcome[Environment]:
        """Plan and pin the environment of *item*; raises as `plan_environment`."""
        pr, month = item.value, Month.parse(self.run.month)
        mirror = self.cache.ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
        interpreters = self.engine.interpreters()
        replan = partial(plan_environment, mirror, pr, month=month, interpreters=interpreters, resolver=self.resolver)
        agents: list[Cost] = []
        try:
            planned = replan()
        except ItemFailure as failure:
            if failure.kind not in WITHOUT_LOCK:
                raise
            task = Task(
                pr=pr,
                environment=unlocked_environment(mirror, pr, month=month, interpreters=interpreters),
                mirror=mirror,
                anchor_sha=pr.change.base_sha,
                os_image=self.os_image,
                replan=lambda fixes: replan(fixes=fixes),
                submodules=lambda _: {},
            )
            try:
                planned = self._otherwise(task, failure, agents)
            except ItemFailure as end:
                end.cost += Cost.total(agents)
                raise
        detail = f"Python {planned.python}, {len(planned.dropped)} requirements dropped"
        return Outcome(planned, Cost.total(agents), detail=detail)

    def _otherwise(self, task: Task, failure: ItemFailure, agents: list[Cost]) -> Environment:
        pr = task.pr

        def keep(attempt: BuildAttempt) -> None:
            agents.append(agent_cost(attempt))
            with self.run.database.transaction() as connection:
                book_attempt(connection, attempt, pr.item)

        with self.run.database.transaction() as connection:
            contexts = contexts_of(connection, pr.facts.repository_id)
            before = last_attempt(connection, self.run.month, pr.key)
        return lock_otherwise(
            LockAttempts(self.engine, task, self.run.run_id, before + 1, keep),
            failure,
            recipes=lock_recipes_for(contexts, pr.change.base_sha, declared_by(task.mirror, pr, task.environment)),
            author=self.authors(pr, contexts) if self.authors else None,
        )


def plan_inputs_of(pr: PullRequest, interpreters: frozenset[str] | None) -> str:
    """Fingerprint of what the environment of *pr* depends on, where the engine has *interpreters*."""
    return fingerprint(Stage.ENVIRONMENTS, pr.change.base_sha, sorted(interpreters or []))
