from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from formulacode_dagster.models.classification import Category, Classification, Difficulty, JudgeOpinion
from formulacode_dagster.models.completion import Completion, OutputMode
from formulacode_dagster.models.errors import ItemFailure, SuspectedOutage
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.classifier import CandidateJudges, classify, is_disputed, verdict_of
from formulacode_dagster.selection.classification.endpoint import OpenAIEndpoint
from formulacode_dagster.selection.classification.language_model import LanguageModel
from formulacode_dagster.selection.classification.prompts import PROMPT_VERSION
from formulacode_dagster.selection.classification.requests import Capabilities
from sandbox.model.app import MODEL, app
from sandbox.model.faults import Fault, ModelFaults
from sandbox.server import serving

MakePullRequest = Callable[..., PullRequest]
PATCH = b"diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a = 1\n+b = 2\n"


class NoCache:
    def get(self, key: str) -> Completion | None:
        return None

    def put(self, completion: Completion) -> None:
        pass


def classify_with(
    pr: PullRequest, patch: bytes, faults: ModelFaults | None = None, *, twice: bool = False
) -> tuple[Classification, Cost]:
    async def run(url: str) -> tuple[Classification, Cost]:
        endpoint = OpenAIEndpoint(
            base_url=f"{url}/v1",
            api_key="any",
            model=MODEL,
            max_tokens=500,
            capabilities=Capabilities(),
            temperature=0.0,
        )
        model = LanguageModel(endpoint, cache=NoCache(), budget=TokenBudget(pr.facts.month), prices=Prices())
        try:
            return await classify(pr.facts, patch, CandidateJudges(model, model if twice else None))
        finally:
            await model.close()

    with serving(app(faults)) as url:
        return asyncio.run(run(url))


def test_a_speed_up_is_classified_with_its_provenance(make_pull_request: MakePullRequest) -> None:
    classification, cost = classify_with(make_pull_request(title="Dev", body="Cache the header, 2 ms -> 1 ms"), PATCH)
    assert classification.is_performance
    assert classification.category is Category.CACHE_AND_REUSE
    assert classification.reason.startswith("sandbox rule: ")
    assert (classification.model, classification.prompt_version) == (MODEL, PROMPT_VERSION)
    assert (classification.output_mode, classification.temperature) == (OutputMode.JSON_SCHEMA, 0.0)
    assert (classification.opinions, classification.disagreements) == ((), ())
    assert not classification.patch_truncated
    assert cost.model_calls == 1


def test_a_no_is_a_verdict_too(make_pull_request: MakePullRequest) -> None:
    classification, _ = classify_with(make_pull_request(title="Fix the sign"), PATCH)
    assert not classification.is_performance
    assert classification.category is Category.UNCATEGORIZED


def test_a_cut_patch_is_recorded(make_pull_request: MakePullRequest) -> None:
    classification, _ = classify_with(make_pull_request(), PATCH + b"+x = 1\n" * 20_000)
    assert classification.patch_truncated


def test_a_verdict_quotes_the_diff(make_pull_request: MakePullRequest) -> None:
    classification, _ = classify_with(make_pull_request(), PATCH)
    assert classification.evidence in (("a = 1",), ("b = 2",))


def test_a_quotation_that_is_not_in_the_diff_is_asked_for_again(make_pull_request: MakePullRequest) -> None:
    faults = ModelFaults(by_call={1: Fault.INVENTED_EVIDENCE})
    classification, cost = classify_with(make_pull_request(), PATCH, faults)
    assert classification.evidence in (("a = 1",), ("b = 2",))
    assert cost.model_calls == 2


def test_the_second_time_the_item_fails_by_name_and_as_no_outage(make_pull_request: MakePullRequest) -> None:
    with pytest.raises(ItemFailure, match="'a line that nobody wrote' does not stand in") as caught:
        classify_with(make_pull_request(), PATCH, ModelFaults(every=Fault.INVENTED_EVIDENCE))
    assert caught.value.kind is FailureKind.EVIDENCE
    assert caught.value.cost.model_calls == 2
    assert not isinstance(caught.value, SuspectedOutage), "an endpoint that quotes badly is not down"


def test_an_error_is_never_a_verdict(make_pull_request: MakePullRequest) -> None:
    with pytest.raises(ItemFailure):
        classify_with(make_pull_request(), PATCH, ModelFaults(every=Fault.GARBAGE))


def opinion(is_performance: bool = True, **changes: object) -> JudgeOpinion:
    said = {
        "model": "first",
        "is_performance": is_performance,
        "category": Category.CACHE_AND_REUSE if is_performance else Category.UNCATEGORIZED,
        "difficulty": Difficulty.EASY,
        "confidence": 0.9,
        "reason": "so",
        "evidence": ("x",),
        "output_mode": OutputMode.TOOLS,
        "temperature": None,
    }
    return JudgeOpinion.model_validate(said | changes)


def test_two_judges_that_agree_are_both_stored_and_both_paid(make_pull_request: MakePullRequest) -> None:
    classification, cost = classify_with(make_pull_request(title="Cache it"), PATCH, twice=True)
    assert [each.is_performance for each in classification.opinions] == [True, True]
    assert classification.disagreements == ()
    assert cost.model_calls == 2


@pytest.mark.parametrize("call", [1, 2])
def test_any_yes_goes_on_and_the_disagreement_is_stored(call: int, make_pull_request: MakePullRequest) -> None:
    faults = ModelFaults(by_call={call: Fault.OPPOSITE})
    classification, _ = classify_with(make_pull_request(title="Cache it"), PATCH, faults, twice=True)
    assert classification.is_performance
    assert classification.category is Category.CACHE_AND_REUSE
    assert [each.is_performance for each in classification.opinions] == [call != 1, call != 2]
    assert classification.disagreements == ("is_performance",)


def test_a_no_that_nobody_disputes_is_not_judged_again(make_pull_request: MakePullRequest) -> None:
    classification, cost = classify_with(make_pull_request(title="Fix the sign"), PATCH, twice=True)
    assert not classification.is_performance
    assert classification.opinions == ()
    assert cost.model_calls == 1


def test_a_second_judge_that_fails_fails_the_item_with_the_cost_of_both(make_pull_request: MakePullRequest) -> None:
    faults = ModelFaults(by_call={2: Fault.INVENTED_EVIDENCE, 3: Fault.INVENTED_EVIDENCE})
    with pytest.raises(ItemFailure) as caught:
        classify_with(make_pull_request(title="Cache it"), PATCH, faults, twice=True)
    assert caught.value.kind is FailureKind.EVIDENCE
    assert caught.value.cost.model_calls == 3


@pytest.mark.parametrize(
    ("title", "said", "disputed"),
    [
        ("Fix it", opinion(False), False),
        ("Fix it", opinion(False, confidence=0.79), True),
        ("Faster parser", opinion(False), True),
        ("Faster parser", opinion(True, confidence=0.1), False),
    ],
)
def test_a_no_in_doubt_or_against_the_title_is_disputed(
    title: str, said: JudgeOpinion, disputed: bool, make_pull_request: MakePullRequest
) -> None:
    assert is_disputed(said, make_pull_request(title=title).facts) is disputed


def test_category_and_difficulty_are_those_of_the_second_who_agrees(make_pull_request: MakePullRequest) -> None:
    facts = make_pull_request().facts
    second = opinion(
        model="second", category=Category.USE_BETTER_ALGORITHM, difficulty=Difficulty.HARD, reason="no, so"
    )
    verdict = verdict_of(facts, [opinion(), second], patch_truncated=True)
    assert (verdict.category, verdict.difficulty) == (Category.USE_BETTER_ALGORITHM, Difficulty.HARD)
    assert verdict.disagreements == ("category", "difficulty")
    assert (verdict.model, verdict.reason, verdict.patch_truncated) == ("first", "so", True)
    denied = verdict_of(facts, [opinion(), opinion(False, model="second")], patch_truncated=False)
    assert (denied.category, denied.disagreements) == (Category.CACHE_AND_REUSE, ("is_performance",))
