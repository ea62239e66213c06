"""Monthly budget of the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Cost

_KEPT = "Answers paid for are kept: run again when it is raised"


class Prices(Frozen):
    """Prices of tokens. Zero for a self-hosted model."""

    dollars_per_million_in: float = Field(default=0.0, ge=0)
    dollars_per_million_out: float = Field(default=0.0, ge=0)

    @property
    def known(self) -> bool:
        """True if any price is positive."""
        return self.dollars_per_million_in > 0 or self.dollars_per_million_out > 0

    def cost(self, tokens_in: int, tokens_out: int, *, calls: int = 1) -> Cost:
        """The cost of so many tokens, in so many calls."""
        dollars = (tokens_in * self.dollars_per_million_in + tokens_out * self.dollars_per_million_out) / 1_000_000
        return Cost(model_calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, dollars=dollars)


@dataclass
class TokenBudget:
    """The tokens and dollars left for one month, shared by concurrent calls of one event loop.

    Spending of other runs becomes known with recorded calls, after ten seconds at most: so long they may exceed the
    limits. A call reserves its worst case before it is made, so the limits are never exceeded by concurrent calls; its
    real cost is charged afterwards. None means no limit.
    """

    month: str
    _: KW_ONLY
    tokens: int | None = None
    dollars: float | None = None
    spent: Cost = Cost()
    """Cost of the month so far, including earlier runs."""
    _held: list[Cost] = field(default_factory=list, init=False)
    _settled: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)

    def require_prices(self, prices: Prices) -> None:
        """Raise ConfigurationError for a dollar limit that could never be reached without prices."""
        if self.dollars is not None and not prices.known:
            raise ConfigurationError(
                "LLM_DOLLARS_PER_MONTH is set, but no price is, so it could never be reached",
                remedy="Set LLM_DOLLARS_PER_MILLION_IN and LLM_DOLLARS_PER_MILLION_OUT, or unset LLM_DOLLARS_PER_MONTH",
            )

    def charge(self, cost: Cost) -> None:
        """Charge the real cost of a call."""
        self.spent += cost

    def learn(self, spent: Cost) -> None:
        """Update from what the month *spent* according to the store, where other runs record too; never below what is
        known here.
        """
        mine, booked = self.spent.model_dump(), spent.model_dump()
        self.spent = Cost(**{name: max(mine[name], booked[name]) for name in mine})

    def require_left(self) -> None:
        """Raise OutsideSystemError if the reservations of calls in flight plus some cost would exceed a limit."""
        if shortage := self._shortage(Cost.total(self._held)):
            raise self._is_spent(shortage)

    @asynccontextmanager
    async def hold(self, worst: Cost) -> AsyncIterator[None]:
        """Keep *worst* aside for the length of a call.

        Waits if only calls in flight stand in the way; raises OutsideSystemError if the budget is spent.
        """
        async with self._settled:
            while self._held and self._shortage(Cost.total((*self._held, worst))):
                await self._settled.wait()
            if shortage := self._shortage(worst):
                raise self._is_spent(shortage)
            self._held.append(worst)
        try:
            yield
        finally:
            async with self._settled:
                self._held.remove(worst)
                self._settled.notify_all()

    @staticmethod
    def _is_spent(shortage: tuple[str, str]) -> OutsideSystemError:
        return OutsideSystemError("llm", shortage[0], remedy=f"Raise {shortage[1]}. {_KEPT}")

    def _shortage(self, wanted: Cost) -> tuple[str, str] | None:
        spent, needed = self.spent.tokens_in + self.spent.tokens_out, wanted.tokens_in + wanted.tokens_out
        if self.tokens is not None and spent + needed > self.tokens:
            used = f"{spent:,} of {self.tokens:,} tokens are used, and the next call may need {needed:,}"
            return f"the token budget of {self.month} is spent ({used})", "LLM_TOKENS_PER_MONTH"
        if self.dollars is not None and self.spent.dollars + wanted.dollars > self.dollars:
            used = f"${self.spent.dollars:.2f} of ${self.dollars:.2f}, and the next call may cost ${wanted.dollars:.4f}"
            return f"the dollar budget of {self.month} is spent ({used})", "LLM_DOLLARS_PER_MONTH"
        return None
