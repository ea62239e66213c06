"""The stage `environments`: plan and lock the environment of every performance pull request."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.recipes import declared_by, lock_recipes_for
from formulacode_dagster.building.images.repairs.attempts import Authors, Task
from formulacode_dagster.building.planning.plan import plan_environment, unlocked_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.base import listed
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import Cost, ItemKind, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS
from formulacode_dagster.operating.store.attempts import agent_cost, book_attempt, contexts_of, last_attempt
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.sources.git.mirror import MirrorCache

from .lock_attempts import WITHOUT_LOCK, LockAttempts, lock_otherwise


@dataclass(frozen=True)
class EnvironmentTools:
    """Everything a plan needs besides the pull request."""

    engine: Engine
    mirrors: MirrorCache
    resolver: Resolver
    os_image: str
    authors: Authors | None = None
    """Authors of fixes if there is no lock; None without an agent."""


async def run(stage: StageRun, tools: EnvironmentTools) -> StageSummary:
    """Plan the pending environments of the month, or this run's part of them; raises as `run_items`."""
    with stage.database.transaction() as connection:
        prs = done_in(connection, stage.month, Stage.CLASSIFICATIONS)
    interpreters = tools.engine.interpreters()
    items = [WorkItem(pr.item, inputs_of(pr, interpreters), pr) for pr in prs]
    redo = tools.authors.unasked(prs) if tools.authors else []
    plan = in_thread(partial(_plan, stage, tools))
    return await run_items(stage, ItemKind.PULL_REQUEST, items, plan, ENVIRONMENTS.save, redo=redo)


def inputs_of(pr: PullRequest, interpreters: frozenset[str] | None) -> str:
    """Return the fingerprint of the inputs of *pr*'s environment, given the engine's *interpreters*."""
    return fingerprint(Stage.ENVIRONMENTS, pr.change.base_sha, sorted(interpreters or []))


def _plan(stage: StageRun, tools: EnvironmentTools, item: WorkItem[PullRequest]) -> Outcome[Environment]:
    """Plan and pin the environment of *item*; raises as `plan_environment`."""
    pr, month = item.value, Month.parse(stage.month)
    mirror = tools.mirrors.ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
    # a lock takes minutes, and no image can be built without them
    absent = mirror.require(pr.change.base_sha, mirror.anchor(pr.change.base_sha, month.start))
    interpreters = tools.engine.interpreters()
    replan = partial(plan_environment, mirror, pr, month=month, interpreters=interpreters, resolver=tools.resolver)
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
            os_image=tools.os_image,
            replan=lambda fixes: replan(fixes=fixes),
            submodules=lambda _: {},
        )
        try:
            planned = _plan_otherwise(stage, tools, task, failure, agents)
        except ItemFailure as end:
            end.cost += Cost.total(agents)
            raise
    if absent:
        note = f"absent from the mirror and the checkout, read by nothing: {listed(absent)}"
        planned = planned.model_copy(update={"notes": (*planned.notes, note)})
    return Outcome(planned, Cost.total(agents), detail=detail_of(planned))


def detail_of(planned: Environment) -> str:
    """Return interpreter and dropped requirements, by name."""
    names = sorted({dropped.requirement for dropped in planned.dropped})
    return (
        f"Python {planned.python}, {len(planned.dropped)} requirements dropped{': ' if names else ''}{', '.join(names)}"
    )


def _plan_otherwise(
    stage: StageRun, tools: EnvironmentTools, task: Task, failure: ItemFailure, agents: list[Cost]
) -> Environment:
    pr = task.pr

    def keep(attempt: BuildAttempt) -> None:
        agents.append(agent_cost(attempt))
        with stage.database.transaction() as connection:
            book_attempt(connection, attempt, pr.item)

    with stage.database.transaction() as connection:
        contexts = contexts_of(connection, pr.facts.repository_id)
        before = last_attempt(connection, stage.month, pr.key)
    return lock_otherwise(
        LockAttempts(tools.engine, task, stage.run_id, before + 1, keep),
        failure,
        recipes=lock_recipes_for(contexts, pr.change.base_sha, declared_by(task.mirror, pr, task.environment)),
        author=tools.authors.author(pr, contexts) if tools.authors else None,
    )
