"""The model's verdict on one candidate."""

from __future__ import annotations

import asyncio

from formulacode_dagster.models.classification import Category, Classification
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind

from .evidence import objection_to
from .language_model import Check, LanguageModel
from .prompts import PROMPT_VERSION, Judgement, prompt_for


async def classify(facts: MergedPullRequest, patch: bytes, model: LanguageModel) -> tuple[Classification, Cost]:
    """What *model* says of a pull request, whichever way, and what asking cost.

    An error is never a verdict: ItemFailure (`evidence` where it quoted twice what is not in the diff) and
    OutsideSystemError of `LanguageModel.ask` go through.
    """
    prompt = await asyncio.to_thread(prompt_for, facts, patch)
    check = Check[Judgement](lambda judgement: objection_to(judgement.evidence, prompt.diff), FailureKind.EVIDENCE)
    answered = await model.ask(prompt.messages, Judgement, check)
    judgement = answered.answer
    classification = Classification(
        month=facts.month,
        repository_id=facts.repository_id,
        number=facts.number,
        is_performance=judgement.is_performance,
        category=judgement.category if judgement.is_performance else Category.UNCATEGORIZED,
        difficulty=judgement.difficulty,
        confidence=judgement.confidence,
        reason=judgement.reason,
        evidence=judgement.evidence,
        model=model.name,
        output_mode=answered.mode,
        temperature=answered.temperature,
        prompt_version=PROMPT_VERSION,
        patch_truncated=prompt.patch_truncated,
    )
    return classification, answered.cost
