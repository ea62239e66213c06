"""Sends labelled commits to a model, and records the cost, including that of cached answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from formulacode_dagster.models.completion import Completion, CompletionCache
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import Cost
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.classifier import CandidateJudges, ask_judge
from formulacode_dagster.selection.classification.endpoint import OpenAIEndpoint
from formulacode_dagster.selection.classification.language_model import LanguageModel
from formulacode_dagster.selection.classification.model_access import SessionAccount
from formulacode_dagster.selection.classification.prompts import PromptOrder
from resources.llm import LLMResource
from sandbox.model.app import MODEL as RULES
from sandbox.model.app import app
from sandbox.server import serving

from .classifier_modes import Question
from .classifier_scores import Verdict

PURPOSE = "the evaluation"
"""Key of a budget in place of a month."""
AT_ONCE = 8
"""Questions under way at the same time."""


class CountedCompletions:
    """A cache that reports the original cost of the answers it returns."""

    def __init__(self, cache: CompletionCache) -> None:
        self._cache = cache
        self._given: dict[str, Cost] = {}

    def get(self, key: str) -> Completion | None:
        """The stored answer, or None."""
        kept = self._cache.get(key)
        if kept is not None:
            cost = Cost(model_calls=1, tokens_in=kept.tokens_in, tokens_out=kept.tokens_out, dollars=kept.dollars)
            self._given[key] = cost
        return kept

    def put(self, completion: Completion) -> None:
        """Keep an answer."""
        self._cache.put(completion)

    def take(self) -> Cost:
        """The cost of answers returned since the last call, each answer once."""
        cost = Cost.total(self._given.values())
        self._given.clear()
        return cost


@dataclass(frozen=True)
class Answers:
    """A verdict for each question, in their order, and their cost now or when first requested."""

    verdicts: tuple[Verdict, ...]
    cost: Cost

    @property
    def unanswered(self) -> int:
        """Questions that no usable answer came to."""
        return sum(verdict.is_performance is None for verdict in self.verdicts)

    def cost_per_thousand(self) -> Cost:
        """Cost of a thousand questions of this kind."""
        scale = 1000 / len(self.verdicts) if self.verdicts else 0.0
        return Cost(
            model_calls=round(self.cost.model_calls * scale),
            tokens_in=round(self.cost.tokens_in * scale),
            tokens_out=round(self.cost.tokens_out * scale),
            dollars=self.cost.dollars * scale,
        )


class Asker:
    """The judges, and the cache that counts for them."""

    def __init__(self, judges: CandidateJudges, cache: CountedCompletions) -> None:
        self._judges = judges
        self._cache = cache
        self.model = judges.first.name
        self.second = judges.second.name if judges.second is not None else self.model

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Put all *questions* to the first judge. One that fails is a verdict without an answer.

        OutsideSystemError goes through.
        """
        return await self._ask(questions, self._judges.first, PromptOrder.TEXTS_FIRST)

    async def ask_second(self, questions: Sequence[Question]) -> Answers:
        """Send them to the second judge: by default the first, with another prompt order."""
        return await self._ask(questions, self._judges.second or self._judges.first, PromptOrder.DIFF_FIRST)

    async def _ask(self, questions: Sequence[Question], model: LanguageModel, way: PromptOrder) -> Answers:
        at_once = asyncio.Semaphore(AT_ONCE)
        self._cache.take()

        async def put(question: Question) -> tuple[Verdict, Cost]:
            async with at_once:
                return await _verdict(question, model, way)

        answered = await asyncio.gather(*map(put, questions))
        cost = Cost.total([self._cache.take(), *(cost for _, cost in answered)])
        return Answers(tuple(verdict for verdict, _ in answered), cost)


@asynccontextmanager
async def asker(cache: CompletionCache) -> AsyncIterator[Asker]:
    """The configured judges; without a model, the sandbox's rules."""
    counted = CountedCompletions(cache)
    resource = LLMResource()
    settings = resource.settings
    if settings.llm_model and settings.llm_api_key.get_secret_value():
        async with resource.classification_tools(counted).judges(SessionAccount(PURPOSE)) as judges:
            yield Asker(judges, counted)
        return
    with serving(app(), name="model") as url:
        endpoint = OpenAIEndpoint(base_url=f"{url}/v1", api_key="any", model=RULES, max_tokens=settings.llm_max_tokens)
        rules = LanguageModel(endpoint, cache=counted, budget=TokenBudget(PURPOSE), prices=Prices())
        try:
            yield Asker(CandidateJudges(rules), counted)
        finally:
            await rules.close()


async def _verdict(question: Question, model: LanguageModel, way: PromptOrder) -> tuple[Verdict, Cost]:
    entry = question.example.entry
    try:
        opined = await ask_judge(question.facts, question.patch, model, way)
    except ItemFailure as failure:
        return Verdict(entry, None, injection=question.injection), failure.cost
    opinion = opined.opinion
    return Verdict(entry, opinion.is_performance, opinion.confidence, question.injection), opined.cost
