"""The one way from the settings to a client of the model."""

from __future__ import annotations

from collections.abc import Callable

from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.models.items import Cost
from formulacode_dagster.selection.classification.budget import Budget, Prices
from formulacode_dagster.selection.classification.endpoint import Endpoint
from formulacode_dagster.selection.classification.language_model import Book, LanguageModel

from .settings import Settings


def monthly_budget(settings: Settings, period: str, spent: Cost = Cost()) -> Budget:
    """What the settings allow for *period*, of which *spent* is gone; one that models share bounds all of them."""
    return Budget(period, tokens=settings.llm_tokens_per_month, dollars=settings.llm_dollars_per_month, spent=spent)


def language_model(
    settings: Settings,
    cache: CompletionCache,
    *,
    period: str,
    model: str = "",
    spent: Cost = Cost(),
    budget: Budget | None = None,
    book: Book | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> LanguageModel:
    """A client that pays for nothing twice, with what *period* has left of its budget; close it after use.

    *model* is LLM_MODEL unless another is named, and *budget* its own unless that is shared with others. It tells
    *book* what it spends, and *on_wait* of waits worth a line. Raises ConfigurationError where a setting is missing.
    """
    endpoint = Endpoint(
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key.get_secret_value(),
        model=model or settings.llm_model,
        max_tokens=settings.llm_max_tokens,
        temperature=settings.llm_temperature,
        timeout_seconds=settings.llm_seconds,
        on_wait=on_wait,
    )
    return LanguageModel(
        endpoint,
        cache=cache,
        budget=budget or monthly_budget(settings, period, spent),
        prices=Prices(
            dollars_per_million_in=settings.llm_dollars_per_million_in,
            dollars_per_million_out=settings.llm_dollars_per_million_out,
        ),
        book=book,
    )
