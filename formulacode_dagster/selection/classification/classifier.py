"""The verdict on one candidate: of one judge, or of two where a second is set."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from formulacode_dagster.models.classification import Category, Classification, Opinion
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind

from .evidence import objection_to
from .language_model import LanguageModel, Requirement
from .prompts import PROMPT_VERSION, Judgement, Way, prompt_for
from .symbolic import POSITIVE

DOUBTED_BELOW = 0.8
"""A no that its judge is less sure of is disputed."""


@dataclass(frozen=True)
class Judges:
    """Who judges candidates."""

    first: LanguageModel
    second: LanguageModel | None = None
    """Judges category and difficulty of what the first accepts, and what is disputed; may be the first, asked in
    another way."""


@dataclass(frozen=True)
class Opined:
    """One judge's opinion, whether it saw less than the whole patch, and what asking cost."""

    opinion: Opinion
    patch_truncated: bool
    cost: Cost


async def opine(facts: MergedPullRequest, patch: bytes, model: LanguageModel, way: Way = Way.TEXTS_FIRST) -> Opined:
    """What *model*, asked in one *way*, says of a pull request.

    An error is never a verdict: ItemFailure (`evidence` where it quoted twice what is not in the diff) and
    OutsideSystemError of `LanguageModel.ask` go through.
    """
    prompt = await asyncio.to_thread(prompt_for, facts, patch, way)
    requirement = Requirement[Judgement](
        lambda judgement: objection_to(judgement.evidence, prompt.diff), FailureKind.EVIDENCE
    )
    answered = await model.ask(prompt.messages, Judgement, requirement)
    judgement = answered.answer.model_dump()
    if not answered.answer.is_performance:
        judgement["category"] = Category.UNCATEGORIZED
    opinion = Opinion(**judgement, model=model.name, output_mode=answered.mode, temperature=answered.temperature)
    return Opined(opinion, prompt.patch_truncated, answered.cost)


def is_disputed(opinion: Opinion, facts: MergedPullRequest) -> bool:
    """Whether *opinion* is a no that its judge doubts or that the title speaks against."""
    if opinion.is_performance:
        return False
    return opinion.confidence < DOUBTED_BELOW or POSITIVE.search(facts.title) is not None


async def classify(facts: MergedPullRequest, patch: bytes, judges: Judges) -> tuple[Classification, Cost]:
    """What *judges* say of a pull request, whichever way, and what asking cost. Raises as `opine`.

    The failure of the second fails the item, and carries the cost of both: the first's answer is kept, and not paid for
    again.
    """
    first = await opine(facts, patch, judges.first)
    opinions, cost = [first.opinion], first.cost
    if judges.second is not None and (first.opinion.is_performance or is_disputed(first.opinion, facts)):
        try:
            second = await opine(facts, patch, judges.second, Way.DIFF_FIRST)
        except ItemFailure as failure:
            failure.cost += first.cost
            raise
        opinions.append(second.opinion)
        cost += second.cost
    return verdict_of(facts, opinions, patch_truncated=first.patch_truncated), cost


def verdict_of(facts: MergedPullRequest, opinions: list[Opinion], *, patch_truncated: bool) -> Classification:
    """The verdict of the first judge, or of both: any yes goes on.

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


def _disagreements(opinions: list[Opinion]) -> tuple[str, ...]:
    if len({opinion.is_performance for opinion in opinions}) > 1:
        return ("is_performance",)
    # of what is no performance change neither means anything
    judged = [opinion for opinion in opinions if opinion.is_performance]
    return tuple(name for name in ("category", "difficulty") if len({getattr(opinion, name) for opinion in judged}) > 1)
