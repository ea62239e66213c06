"""Connections to the models of one endpoint, paid from the month's budget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.models.items import Cost

from .budget import Prices, TokenBudget
from .endpoint import OpenAIEndpoint
from .language_model import LanguageModel


class SpendingAccount(Protocol):
    """Whoever pays for calls: a stage of a month, or a session outside any month."""

    @property
    def month(self) -> str:
        """Key of the month, or the name of the session; error messages about the budget contain it."""
        ...

    def spent(self) -> Cost:
        """Return what was spent so far; it may block."""
        ...

    def book(self, cost: Cost) -> Cost | None:
        """Record a call, also one without a result, and return the total by then if others spend too; it may block."""
        ...

    def note(self, text: str) -> None:
        """Report a wait."""
        ...


@dataclass(frozen=True)
class SessionAccount:
    """An account of a session outside any month: nothing was spent before, and nothing is recorded."""

    month: str

    def spent(self) -> Cost:
        """Return nothing."""
        return Cost()

    def book(self, cost: Cost) -> Cost | None:
        """Forget *cost*; the budget of the session counts it."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class ModelAccess:
    """An OpenAI-compatible endpoint with its limits, and the cache of paid answers."""

    base_url: str
    api_key: str = field(repr=False)
    max_tokens: int
    temperature: float | None
    timeout_seconds: float
    prices: Prices
    cache: CompletionCache
    tokens_per_month: int | None = None
    dollars_per_month: float | None = None

    @asynccontextmanager
    async def connect(self, account: SpendingAccount, names: Sequence[str]) -> AsyncIterator[list[LanguageModel]]:
        """Connect to the models *names* for the length of a `with` block; all of them share one budget.

        Raises ConfigurationError if the endpoint's key or a name is missing, or a dollar budget has no prices.
        """
        if not names:
            yield []
            return
        budget = TokenBudget(
            account.month, tokens=self.tokens_per_month, dollars=self.dollars_per_month, spent=account.spent()
        )
        async with AsyncExitStack() as stack:
            models = []
            for name in names:
                endpoint = OpenAIEndpoint(
                    base_url=self.base_url,
                    api_key=self.api_key,
                    model=name,
                    max_tokens=self.max_tokens,
                    temperature=self.temperature,
                    timeout_seconds=self.timeout_seconds,
                    on_wait=account.note,
                )
                model = LanguageModel(endpoint, self.cache, budget, self.prices, account.book)
                stack.push_async_callback(model.close)
                models.append(model)
            yield models
