"""Budgets of agents in tokens, dollars and minutes: for one item, one repository, one month."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from pydantic import Field

from formulacode_dagster.building.agents.protocol import AgentBudget
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.items import Cost

Key = tuple[int, int]
"""(repository id, number)."""


class Scope(StrEnum):
    """The subject of a limit."""

    ITEM = "item"
    REPOSITORY = "repository"
    MONTH = "month"


class Limits(Frozen):
    """Amounts allowed; None means no limit."""

    tokens: int | None = Field(default=None, ge=0, description="in and out")
    dollars: float | None = Field(default=None, ge=0)
    minutes: float | None = Field(default=None, ge=0, description="of agents at work, builds they ask for included")


@dataclass(frozen=True)
class Shortage:
    """Amounts used."""

    scope: Scope
    unit: str

    def __str__(self) -> str:
        """Format it for people."""
        return f"the {self.scope}'s {self.unit} for agents are used up"


@dataclass
class Purse:
    """The budgets of one month, shared by the threads of a run.

    A run of an agent reserves its worst case before it begins, so that no limit is passed at any concurrency; its
    actual use is charged afterwards.
    """

    limits: Mapping[Scope, Limits] = field(default_factory=dict)
    spent: dict[Key, Cost] = field(default_factory=dict)
    """Cost of agents in the month so far, by pull request."""
    _held: list[tuple[Key, AgentBudget]] = field(default_factory=list, init=False)
    _settled: threading.Condition = field(default_factory=threading.Condition, init=False)

    def hold(self, key: Key, run: AgentBudget) -> AgentBudget | Shortage:
        """Reserve the budget of a run for *key*: *run*, or the rest; or return the exhausted limit.

        Waits while only runs in progress stand in the way.
        """
        with self._settled:
            while isinstance(left := self._left(key, run, with_held=True), Shortage):
                spent = self._left(key, run, with_held=False)
                if isinstance(spent, Shortage):
                    return spent
                self._settled.wait()
            self._held.append((key, left))
            return left

    def settle(self, key: Key, held: AgentBudget, cost: Cost) -> None:
        """Charge *cost* for a run that *held* was kept aside for."""
        with self._settled:
            self._held.remove((key, held))
            self.spent[key] = self.spent.get(key, Cost()) + cost
            self._settled.notify_all()

    def _left(self, key: Key, run: AgentBudget, *, with_held: bool) -> AgentBudget | Shortage:
        tokens, dollars, seconds = float(run.tokens), run.dollars, run.seconds
        for scope, limits in self.limits.items():
            cost = Cost.total(cost for other, cost in self.spent.items() if _is_within(scope, other, key))
            held = [budget for other, budget in self._held if with_held and _is_within(scope, other, key)]
            left = {
                "tokens": _or_inf(limits.tokens)
                - (cost.tokens_in + cost.tokens_out)
                - sum(budget.tokens for budget in held),
                "dollars": _or_inf(limits.dollars) - cost.dollars - sum(budget.dollars for budget in held),
                "minutes": _or_inf(limits.minutes) - cost.seconds / 60 - sum(budget.seconds for budget in held) / 60,
            }
            for unit, amount in left.items():
                if amount <= 0:
                    return Shortage(scope, unit)
            tokens, dollars = min(tokens, left["tokens"]), min(dollars, left["dollars"])
            seconds = min(seconds, left["minutes"] * 60)
        return run.model_copy(update={"tokens": int(tokens), "dollars": dollars, "seconds": seconds})


def _is_within(scope: Scope, other: Key, key: Key) -> bool:
    match scope:
        case Scope.ITEM:
            return other == key
        case Scope.REPOSITORY:
            return other[0] == key[0]
        case Scope.MONTH:
            return True


def _or_inf(limit: float | None) -> float:
    return inf if limit is None else limit
