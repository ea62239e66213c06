"""An agent at work in a month: its budgets, earlier attempts it sees, and items it was not asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.building.agents.edit import RULE
from formulacode_dagster.building.agents.protocol import Agent, AgentBudget, PastAttempt
from formulacode_dagster.models.items import ItemState
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.attempts import agent_costs, asked_of, attempts_of, log_of_attempt

from .agent_request import AgentAuthor, AgentDispatcher, past_attempt
from .budgets import Limits, Purse, Scope

MOST_EARLIER = 12
"""Attempts of earlier runs that an agent is shown, the newest."""


@dataclass(frozen=True)
class MonthAuthors:
    """Implements `repairs.attempts.Authors`: the agent of one run of a stage, within what the month's budgets leave."""

    stage: StageRun
    dispatcher: AgentDispatcher

    @classmethod
    def of(
        cls, stage: StageRun, agent: Agent, budget: AgentBudget, limits: Mapping[Scope, Limits], max_attempts: int
    ) -> MonthAuthors:
        """Return *agent* for *stage*, with what all runs so far have left of the month's *limits*."""
        with stage.database.transaction() as connection:
            spent = agent_costs(connection, stage.month)
        dispatcher = AgentDispatcher(
            agent,
            Purse(limits, spent),
            budget,
            max_attempts=max_attempts,
            tasks_per_repository=stage.options.agent_tasks_per_repository,
            at_once=stage.options.agent_concurrency,
            note=stage.note,
        )
        return cls(stage, dispatcher)

    @property
    def concurrency(self) -> int:
        """Tasks for which the agent may work at the same time."""
        return self.dispatcher.at_once

    def author(self, pr: PullRequest, contexts: Sequence[StoredContext]) -> AgentAuthor:
        """Return the author for *pr*; the agent sees the attempts of earlier runs, with any agent."""
        with self.stage.database.transaction() as connection:
            earlier: list[PastAttempt] = []
            for attempt in attempts_of(connection, self.stage.month, pr.key)[-MOST_EARLIER:]:
                log = log_of_attempt(connection, self.stage.month, pr.key, attempt.attempt) or ""
                earlier.append(past_attempt(attempt.model_copy(update={"log": log})))
        return self.dispatcher.author(contexts, earlier)

    def unasked(self, prs: Collection[PullRequest]) -> list[str]:
        """Return the items of *prs* that failed in the stage without this agent having been asked."""
        with self.stage.database.transaction() as connection:
            entries = ledger.entries_of(connection, self.stage.month, self.stage.stage)
            asked = asked_of(connection, self.stage.month, self.stage.stage, f"{RULE}:{self.dispatcher.agent.name}")
        failed = {entry.item for entry in entries if entry.state is ItemState.FAILED}
        return [pr.item for pr in prs if pr.item in failed and pr.key not in asked]
