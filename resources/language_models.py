"""Access to the models of the settings."""

from __future__ import annotations

from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.selection.classification.budget import Prices
from formulacode_dagster.selection.classification.model_access import ModelAccess

from .settings import Settings


def model_access(settings: Settings, cache: CompletionCache) -> ModelAccess:
    """Return access to the endpoint of *settings*; answers are taken from and stored in *cache*."""
    return ModelAccess(
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key.get_secret_value(),
        max_tokens=settings.llm_max_tokens,
        temperature=settings.llm_temperature,
        timeout_seconds=settings.llm_seconds,
        prices=Prices(
            dollars_per_million_in=settings.llm_dollars_per_million_in,
            dollars_per_million_out=settings.llm_dollars_per_million_out,
        ),
        cache=cache,
        tokens_per_month=settings.llm_tokens_per_month,
        dollars_per_month=settings.llm_dollars_per_month,
    )
