"""The model's verdict on one candidate."""

from __future__ import annotations

import asyncio

from formulacode_dagster.models.classification import Category, Classification
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.pull_request import PullRequest

from .language_model import LanguageModel
from .prompts import PROMPT_VERSION, Judgement, prompt_for


async def classify(pr: PullRequest, patch: bytes, model: LanguageModel) -> tuple[Classification, Cost]:
    """What *model* says of *pr*, whichever way, and what asking cost.

    An error is never a verdict: ItemFailure and OutsideSystemError of `LanguageModel.ask` go through.
    """
    prompt = await asyncio.to_thread(prompt_for, pr, patch)
    judgement, cost = await model.ask(prompt.messages, Judgement)
    classification = Classification(
        month=pr.facts.month,
        repository_id=pr.facts.repository_id,
        number=pr.facts.number,
        is_performance=judgement.is_performance,
        category=judgement.category if judgement.is_performance else Category.UNCATEGORIZED,
        difficulty=judgement.difficulty,
        confidence=judgement.confidence,
        reason=judgement.reason,
        model=model.name,
        prompt_version=PROMPT_VERSION,
        patch_truncated=prompt.patch_truncated,
    )
    return classification, cost
