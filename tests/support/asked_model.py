"""A language model that gets the sandbox's answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from formulacode_dagster.models.completion import Completion
from formulacode_dagster.models.items import Cost
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.endpoint import ModelRetries, OpenAIEndpoint
from formulacode_dagster.selection.classification.language_model import Book, LanguageModel
from formulacode_dagster.selection.classification.prompts import Judgement
from formulacode_dagster.selection.classification.requests import Capabilities, Message
from sandbox.model.app import MODEL, app
from sandbox.model.faults import ModelFaults
from sandbox.server import serving

QUICK = ModelRetries(backoff=Backoff(first_seconds=0.01, longest_seconds=0.05))
KEY = "sk-a-very-secret-key"


class MemoryCache:
    """Keeps completions as long as the test."""

    def __init__(self) -> None:
        self.kept: dict[str, Completion] = {}

    def get(self, key: str) -> Completion | None:
        return self.kept.get(key)

    def put(self, completion: Completion) -> None:
        self.kept.setdefault(completion.key, completion)


@asynccontextmanager
async def model_at(
    url: str,
    *,
    cache: MemoryCache | None = None,
    budget: TokenBudget | None = None,
    prices: Prices | None = None,
    book: Book | None = None,
    **settings: Any,
) -> AsyncIterator[LanguageModel]:
    """The model of the sandbox at *url*, with *settings* of its endpoint."""
    defaults: dict[str, Any] = {
        "base_url": f"{url}/v1",
        "api_key": KEY,
        "model": MODEL,
        "max_tokens": 200,
        "capabilities": Capabilities(),
        "timeout_seconds": 20.0,
        "retries": QUICK,
    }
    endpoint = OpenAIEndpoint(**{**defaults, **settings})
    model = LanguageModel(endpoint, cache or MemoryCache(), budget or TokenBudget("2026-02"), prices or Prices(), book)
    try:
        yield model
    finally:
        await model.close()


def question(title: str = "Faster merge") -> tuple[Message, ...]:
    """The prompt for a pull request with this title."""
    return (Message(role="user", content=f"<title>\n{title}\n</title>\n<body>\n</body>\n<patch>\n</patch>"),)


async def ask_once(url: str, **settings: Any) -> tuple[Judgement, Cost]:
    """The model's answer to one question, and its cost."""
    async with model_at(url, **settings) as model:
        answered = await model.ask(question(), Judgement)
        return answered.answer, answered.cost


@contextmanager
def sandbox(faults: ModelFaults | None = None) -> Iterator[tuple[str, Callable[[], int]]]:
    """A model that answers with *faults*: where it is, and how often it was asked."""
    with serving(app(faults)) as url:
        yield url, lambda: int(httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"])
