from __future__ import annotations

import threading

import pytest

from formulacode_dagster.building.agents.protocol import AgentBudget
from formulacode_dagster.building.synthesis.budgets import Limits, Purse, Scope, Shortage
from formulacode_dagster.models.items import Cost

ONE, TWO, ELSEWHERE = (7, 1), (7, 2), (8, 1)
RUN = AgentBudget(seconds=600, tokens=1000, dollars=5)


def held(purse: Purse, key: tuple[int, int] = ONE) -> AgentBudget:
    budget = purse.hold(key, RUN)
    assert isinstance(budget, AgentBudget), budget
    return budget


def test_a_run_gets_what_is_left_of_each_scope_and_no_more_than_a_run_may() -> None:
    assert held(Purse()) == RUN
    limits = {
        Scope.ITEM: Limits(tokens=900),
        Scope.REPOSITORY: Limits(dollars=4, minutes=30),
        Scope.MONTH: Limits(minutes=10),
    }
    spent = {ONE: Cost(tokens_in=300, tokens_out=100), TWO: Cost(dollars=1.5), ELSEWHERE: Cost(seconds=360)}
    budget = held(Purse(limits, spent))
    assert (budget.tokens, budget.dollars, budget.seconds) == (500, 2.5, 240)


@pytest.mark.parametrize(
    ("scope", "limits", "unit", "spender"),
    [
        (Scope.ITEM, Limits(tokens=120), "tokens", ONE),
        (Scope.REPOSITORY, Limits(dollars=0.5), "dollars", TWO),
        (Scope.MONTH, Limits(minutes=0.05), "minutes", ELSEWHERE),
    ],
)
def test_what_is_used_up_is_named_and_only_where_it_is_shared(
    scope: Scope, limits: Limits, unit: str, spender: tuple[int, int]
) -> None:
    purse = Purse({scope: limits})
    budget = purse.hold(spender, RUN)
    assert isinstance(budget, AgentBudget)
    purse.settle(spender, budget, Cost(tokens_in=100, tokens_out=20, dollars=0.5, seconds=3))
    assert purse.hold(spender, RUN) == Shortage(scope, unit)
    assert isinstance(purse.hold((9, 9), RUN), Shortage) is (scope is Scope.MONTH)
    assert str(Shortage(scope, unit)) == f"the {scope}'s {unit} for agents are used up"


def test_two_runs_never_reserve_more_than_the_budget() -> None:
    purse = Purse({Scope.MONTH: Limits(tokens=1500)})
    first, second = held(purse, ONE), held(purse, TWO)
    assert (first.tokens, second.tokens) == (1000, 500)
    third: list[AgentBudget | Shortage] = []
    waiting = threading.Thread(target=lambda: third.append(purse.hold(ELSEWHERE, RUN)))
    waiting.start()
    purse.settle(ONE, first, Cost(tokens_in=200))
    waiting.join(60)
    assert [isinstance(budget, AgentBudget) and budget.tokens for budget in third] == [800]
    purse.settle(TWO, second, Cost(tokens_out=500))
    assert purse.spent == {ONE: Cost(tokens_in=200), TWO: Cost(tokens_out=500)}
