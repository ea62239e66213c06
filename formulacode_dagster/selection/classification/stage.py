"""The stage `classifications`: screen every pull request, then ask the judges about the candidates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS, PullRequestKey
from formulacode_dagster.operating.store.pull_requests import iterate_done, patch_of, pull_request_of

from .classifier import CandidateJudges, classify
from .model_access import ModelAccess, SpendingAccount
from .prompts import PROMPT_VERSION
from .symbolic import screen


@dataclass(frozen=True)
class ClassificationTools:
    """Judges of candidates."""

    models: ModelAccess
    model: str
    judge: str = ""
    """Second judge; the name of the first asks that model again with the diff first. Empty: no second judge."""

    @asynccontextmanager
    async def judges(self, account: SpendingAccount) -> AsyncIterator[CandidateJudges]:
        """Connect to the judges; raises as `ModelAccess.connect`."""
        async with self.models.connect(account, list(dict.fromkeys((self.model, self.judge or self.model)))) as models:
            yield CandidateJudges(models[0], models[-1] if self.judge else None)


@dataclass(frozen=True)
class _Screened:
    """A screened pull request. Its texts and patch are read again when needed: a month has 20,000 of many kB."""

    key: PullRequestKey
    rejection: Rejection | None


async def run(stage: StageRun, tools: ClassificationTools) -> StageSummary:
    """Classify the pending pull requests of the month; raises as `run_items` and `ModelAccess.connect`."""
    with stage.database.transaction() as connection:
        items = [
            WorkItem(pr.item, _inputs(pr, tools), _Screened(pr.key, _rejection(pr)))
            for pr in iterate_done(connection, stage.month, Stage.PULL_REQUESTS)
        ]

    def read(key: PullRequestKey) -> tuple[PullRequest, bytes]:
        with stage.database.transaction() as connection:
            pr = pull_request_of(connection, stage.month, key)
            return pr, patch_of(connection, pr)

    async with tools.judges(stage) as judges:

        async def judge(item: WorkItem[_Screened]) -> Outcome[Classification]:
            if item.value.rejection is not None:
                raise item.value.rejection
            pr, patch = await asyncio.to_thread(read, item.value.key)
            verdict, cost = await classify(pr.facts, patch, judges)
            rejection = None if verdict.is_performance else Rejection(RejectionReason.NOT_PERFORMANCE, verdict.reason)
            kind = f"{verdict.category}, {verdict.difficulty}"
            # a rejection's detail is its reason
            return Outcome(verdict, cost, "" if rejection else kind, rejection=rejection)

        return await run_items(stage, ItemKind.PULL_REQUEST, items, judge, CLASSIFICATIONS.save)


def _rejection(pr: PullRequest) -> Rejection | None:
    try:
        screen(pr)
    except Rejection as rejection:
        return rejection.with_traceback(None)
    return None


def _inputs(pr: PullRequest, tools: ClassificationTools) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "labels", "linked_issues"})
    asked = (tools.model, tools.judge, tools.models.temperature)
    return fingerprint(Stage.CLASSIFICATIONS, facts, pr.change.patch_sha256, *asked, PROMPT_VERSION)
