"""An agent in a month: what is left of its budgets, what it is shown of earlier runs, and whom it was not asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from formulacode_dagster.building.agents.edit import RULE
from formulacode_dagster.building.agents.protocol import Agent, AgentBudget, PastAttempt
from formulacode_dagster.models.items import ItemState
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.attempts import agent_costs, asked_of, attempts_of, log_of_attempt

from .asking import AgentAuthor, AgentDesk, past_attempt
from .budgets import Limits, Purse, Scope

MOST_EARLIER = 12
"""Attempts of earlier runs that an agent is shown, the newest."""


def desk_of(
    run: StageRun, agent: Agent, budget: AgentBudget, limits: Mapping[Scope, Limits], max_attempts: int
) -> AgentDesk:
    """*agent* at work in *run*, with what its month has left of *limits*, whatever runs have spent by now."""
    with run.database.transaction() as connection:
        spent = agent_costs(connection, run.month)
    return AgentDesk(
        agent,
        Purse(limits, spent),
        budget,
        max_attempts=max_attempts,
        tasks_per_repository=run.options.agent_tasks_per_repository,
        at_once=run.options.agents_at_once,
        note=lambda line: listener().note(run.stage, line),
    )


def author_of(run: StageRun, desk: AgentDesk, pr: PullRequest, contexts: Sequence[StoredContext]) -> AgentAuthor:
    """Who asks the agent of *desk* for *pr*; it is shown what earlier runs have tried, by whichever agent."""
    with run.database.transaction() as connection:
        earlier: list[PastAttempt] = []
        for attempt in attempts_of(connection, run.month, pr.key)[-MOST_EARLIER:]:
            log = log_of_attempt(connection, run.month, pr.key, attempt.attempt) or ""
            earlier.append(past_attempt(attempt.model_copy(update={"log": log})))
    return desk.author(contexts, earlier)


def unasked(run: StageRun, agent: Agent, prs: Collection[PullRequest]) -> list[str]:
    """The items of *prs* that failed in the stage, and that *agent* was never asked for: it may know more."""
    with run.database.transaction() as connection:
        entries = ledger.entries_of(connection, run.month, run.stage)
        asked = asked_of(connection, run.month, run.stage, f"{RULE}:{agent.name}")
    failed = {entry.item for entry in entries if entry.state is ItemState.FAILED}
    return [pr.item for pr in prs if pr.item in failed and pr.key not in asked]
