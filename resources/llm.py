"""The model: any OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import Any

import dagster as dg

from formulacode_dagster.items.progress import listener
from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.selection.budget import Budget, Prices
from formulacode_dagster.selection.language_model import LanguageModel

from .settings import decimal_number, whole_number


class LLMResource(dg.ConfigurableResource[Any]):
    """Hands out the async client with its budget."""

    model: str
    base_url: str
    api_key: str
    max_tokens: str
    seconds: str
    tokens_per_month: str
    dollars_per_month: str
    dollars_per_million_in: str
    dollars_per_million_out: str

    def preflight(self) -> tuple[bool, str]:
        """Ask the endpoint for its models."""
        import httpx

        if not self.api_key or not self.model:
            return False, f"{self.base_url}: LLM_API_KEY and LLM_MODEL must be set before anything is classified"
        try:
            answer = httpx.get(
                f"{self.base_url.rstrip('/')}/models", headers={"Authorization": f"Bearer {self.api_key}"}, timeout=20
            )
        except httpx.HTTPError as error:
            raise OutsideSystemError(
                "llm", f"{self.base_url} does not answer", why=str(error), remedy="Start it, or fix LLM_BASE_URL"
            ) from error
        if answer.status_code in (401, 403):
            raise OutsideSystemError("llm", f"{self.base_url} refuses LLM_API_KEY", remedy="Set a valid key")
        return answer.is_success, f"{self.base_url} answers {answer.status_code}; model {self.model}"

    def language_model(self, cache: CompletionCache, *, month: str, spent: Cost) -> LanguageModel:
        """A client that pays for nothing twice, with what *month* has left of its budget; close it after use."""
        return LanguageModel(
            base_url=self.base_url,
            api_key=self.api_key,
            model=self.model,
            max_tokens=whole_number("LLM_MAX_TOKENS", self.max_tokens, minimum=1),
            timeout_seconds=whole_number("LLM_SECONDS", self.seconds, minimum=1),
            cache=cache,
            budget=Budget(
                month,
                tokens=whole_number("LLM_TOKENS_PER_MONTH", self.tokens_per_month) if self.tokens_per_month else None,
                dollars=decimal_number("LLM_DOLLARS_PER_MONTH", self.dollars_per_month)
                if self.dollars_per_month
                else None,
                spent=spent,
            ),
            on_wait=lambda text: listener().note(Stage.CLASSIFICATIONS, text),
            prices=Prices(
                dollars_per_million_in=decimal_number("LLM_DOLLARS_PER_MILLION_IN", self.dollars_per_million_in),
                dollars_per_million_out=decimal_number("LLM_DOLLARS_PER_MILLION_OUT", self.dollars_per_million_out),
            ),
        )
