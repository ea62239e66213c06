"""The model: any OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import Any

import dagster as dg

from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.models.items import Cost
from formulacode_dagster.selection.budget import Budget, Prices
from formulacode_dagster.selection.language_model import LanguageModel

from .settings import decimal_number, whole_number


class LLMResource(dg.ConfigurableResource[Any]):
    """Hands out the async client with its budget."""

    model: str
    base_url: str
    api_key: str
    max_tokens: str
    tokens_per_month: str
    dollars_per_month: str
    dollars_per_million_in: str
    dollars_per_million_out: str

    def language_model(self, cache: CompletionCache, *, month: str, spent: Cost) -> LanguageModel:
        """A client that pays for nothing twice, with what *month* has left of its budget; close it after use."""
        return LanguageModel(
            base_url=self.base_url,
            api_key=self.api_key,
            model=self.model,
            max_tokens=whole_number("LLM_MAX_TOKENS", self.max_tokens, minimum=1),
            cache=cache,
            budget=Budget(
                month,
                tokens=whole_number("LLM_TOKENS_PER_MONTH", self.tokens_per_month) if self.tokens_per_month else None,
                dollars=decimal_number("LLM_DOLLARS_PER_MONTH", self.dollars_per_month)
                if self.dollars_per_month
                else None,
                spent=spent,
            ),
            prices=Prices(
                dollars_per_million_in=decimal_number("LLM_DOLLARS_PER_MILLION_IN", self.dollars_per_million_in),
                dollars_per_million_out=decimal_number("LLM_DOLLARS_PER_MILLION_OUT", self.dollars_per_million_out),
            ),
        )
