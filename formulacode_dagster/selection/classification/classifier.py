"""The verdict on one candidate, from one judge, or from two if a second is configured."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from formulacode_dagster.models.classification import Category, Classification, JudgeOpinion
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind

from .evidence import objection_to
from .language_model import LanguageModel, Requirement
from .prompts import PROMPT_VERSION, Judgement, PromptOrder, prompt_for
from .symbolic import POSITIVE

DOUBTED_BELOW = 0.8
"""A no that its judge is less sure of is disputed."""


@dataclass(frozen=True)
class CandidateJudges:
    """Judges of candidates."""

    first: LanguageModel
    second: LanguageModel | None = None
    """Judges category and difficulty of what the first accepts, and disputed verdicts; may be the first, asked
    differently.
    """


@dataclass(frozen=True)
class ModelOpinion:
    """One judge's opinion, whether it saw only part of the patch, and its cost."""

    opinion: JudgeOpinion
    patch_truncated: bool
    cost: Cost


async def ask_judge(
    facts: MergedPullRequest, patch: bytes, model: LanguageModel, way: PromptOrder = PromptOrder.TEXTS_FIRST
) -> ModelOpinion:
    """Return the opinion of *model* on a pull request, asked in one *way*.

    An error is never a verdict: ItemFailure (`evidence` if it twice quoted text that is not in the diff) and
    OutsideSystemError of `LanguageModel.ask` propagate.
    """
    prompt = await asyncio.to_thread(prompt_for, facts, patch, way)
    requirement = Requirement[Judgement](
        lambda judgement: objection_to(judgement.evidence, prompt.diff), FailureKind.EVIDENCE
    )
    answered = await model.ask(prompt.messages, Judgement, requirement)
    judgement = answered.answer.model_dump()
    if not answered.answer.is_performance:
        judgement["category"] = Category.UNCATEGORIZED
    opinion = JudgeOpinion(**judgement, model=model.name, output_mode=answered.mode, temperature=answered.temperature)
    return ModelOpinion(opinion, prompt.patch_truncated, answered.cost)


def is_disputed(opinion: JudgeOpinion, facts: MergedPullRequest) -> bool:
    """Return True if *opinion* is a negative verdict with low confidence or a contradicting title."""
    if opinion.is_performance:
        return False
    return opinion.confidence < DOUBTED_BELOW or POSITIVE.search(facts.title) is not None


async def classify(facts: MergedPullRequest, patch: bytes, judges: CandidateJudges) -> tuple[Classification, Cost]:
    """Return the verdict of *judges* on a pull request, positive or negative, and its cost. Raises as `ask_judge`.

    The failure of the second fails the item, and carries the cost of both: the first's answer is kept, and not paid for
    again.
    """
    first = await ask_judge(facts, patch, judges.first)
    opinions, cost = [first.opinion], first.cost
    if judges.second is not None and (first.opinion.is_performance or is_disputed(first.opinion, facts)):
        try:
            second = await ask_judge(facts, patch, judges.second, PromptOrder.DIFF_FIRST)
        except ItemFailure as failure:
            failure.cost += first.cost
            raise
        opinions.append(second.opinion)
        cost += second.cost
    return verdict_of(facts, opinions, patch_truncated=first.patch_truncated), cost


def verdict_of(facts: MergedPullRequest, opinions: list[JudgeOpinion], *, patch_truncated: bool) -> Classification:
    """Combine the verdicts: any positive one accepts.

    Reason and evidence are those of the first that says so; category and difficulty of the last that does.
    """
    is_performance = any(opinion.is_performance for opinion in opinions)
    agreeing = [opinion for opinion in opinions if opinion.is_performance is is_performance]
    told, graded = agreeing[0], agreeing[-1]
    return Classification(
        month=facts.month,
        repository_id=facts.repository_id,
        number=facts.number,
        is_performance=is_performance,
        category=graded.category,
        difficulty=graded.difficulty,
        confidence=told.confidence,
        reason=told.reason,
        evidence=told.evidence,
        model=opinions[0].model,
        output_mode=opinions[0].output_mode,
        temperature=opinions[0].temperature,
        prompt_version=PROMPT_VERSION,
        patch_truncated=patch_truncated,
        opinions=tuple(opinions) if len(opinions) > 1 else (),
        disagreements=_disagreements(opinions),
    )


def _disagreements(opinions: list[JudgeOpinion]) -> tuple[str, ...]:
    if len({opinion.is_performance for opinion in opinions}) > 1:
        return ("is_performance",)
    # for a negative verdict neither has a meaning
    judged = [opinion for opinion in opinions if opinion.is_performance]
    return tuple(name for name in ("category", "difficulty") if len({getattr(opinion, name) for opinion in judged}) > 1)
