"""An agent in a month: whom it was not asked for yet, and what is left of the budgets."""

from __future__ import annotations

import pytest

from formulacode_dagster.building.agents.protocol import AgentBudget
from formulacode_dagster.building.synthesis.budgets import Limits, Scope, Shortage
from formulacode_dagster.building.synthesis.month import MonthAuthors
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.attempts import save_attempt
from formulacode_dagster.operating.store.database import Database
from resources.agents import AgentsResource
from resources.settings import read_settings
from tests.records import make_attempt, make_merged, make_pull_request
from tests.support.agents import StubAgent, edited

MONTH = "2026-02"
PRS = [make_pull_request(make_merged(month=MONTH, repository_id=7, repository="a/b", number=n)) for n in (1, 2, 3)]


@pytest.fixture
def run(database: Database) -> StageRun:
    """A run of a month in which the first is done, the others failed, and a stub was asked for the second."""
    states = (ItemState.DONE, ItemState.FAILED, ItemState.FAILED)
    with database.transaction() as connection:
        for pr, state in zip(PRS, states, strict=True):
            ledger.record(connection, [LedgerEntry(stage=Stage.IMAGES, month=MONTH, item=pr.item, state=state)])
        asked = {"rung": Rung.AGENT, "rule": "agent:stub", "kind": "build", "dollars": 3.0, "log": "its log"}
        save_attempt(connection, make_attempt(repository_id=7, number=2, **asked))
    options = RunOptions(agent_concurrency=2, agent_tasks_per_repository=1)
    return StageRun(database, Stage.IMAGES, MONTH, "run", options)


def test_failures_are_retried_by_an_agent_that_was_not_asked(run: StageRun) -> None:
    agent = StubAgent(edited())
    authors = MonthAuthors.of(run, agent, AgentBudget(), {}, 1)
    assert authors.unasked(PRS) == ["a/b#3"]
    agent.name = "another"
    assert authors.unasked(PRS) == ["a/b#2", "a/b#3"]


def test_a_dispatcher_knows_the_months_spending_and_authors_attempts(run: StageRun) -> None:
    limits = {Scope.REPOSITORY: Limits(dollars=3)}
    authors = MonthAuthors.of(run, StubAgent(edited()), AgentBudget(), limits, 4)
    desk = authors.dispatcher
    assert (authors.concurrency, desk.tasks_per_repository, desk.max_attempts) == (2, 1, 4)
    assert desk.purse.spent == {(7, 2): Cost(dollars=3.0)}
    assert desk.purse.hold((7, 3), AgentBudget()) == Shortage(Scope.REPOSITORY, "dollars")
    author = authors.author(PRS[1], [])
    assert [(past.rule, past.log) for past in author.earlier] == [("agent:stub", "its log")]


def test_budgets_come_from_one_setting_and_no_agent_is_the_default(
    run: StageRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_AGENT_BUDGET", "item.tokens=10, month.dollars=2.5,month.minutes=7")
    assert AgentsResource().limits == {
        Scope.ITEM: Limits(tokens=10),
        Scope.MONTH: Limits(dollars=2.5, minutes=7),
    }
    assert AgentsResource().authors(run) is None


@pytest.mark.parametrize("budget", ["tokens=1", "week.tokens=1", "item.words=1", "item.tokens=-1", "item.tokens=nan"])
def test_a_budget_that_cannot_be_is_named(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_AGENT_BUDGET", budget)
    with pytest.raises(ConfigurationError, match=r"for FC_AGENT_BUDGET"):
        read_settings()
