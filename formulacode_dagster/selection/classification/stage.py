"""The stage `classifications`: every pull request screened, and the model asked about the candidates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS, PullRequestKey
from formulacode_dagster.operating.store.pull_requests import iterate_done, patch_of, pull_request_of
from formulacode_dagster.operating.store.spending import Spent, book_call, spending_of

from .classifier import Judges, classify
from .language_model import Book
from .prompts import PROMPT_VERSION
from .symbolic import screen


@dataclass(frozen=True)
class _Screened:
    """What is held in memory of each pull request of the month: a month has 20,000, with texts of many kB."""

    key: PullRequestKey
    rejection: Rejection | None


async def classify_month(
    run: StageRun, asked: Sequence[object], connect: Callable[[Cost, Book], AbstractAsyncContextManager[Judges]]
) -> StageSummary:
    """Classify what is pending of the month.

    *asked* is what verdicts depend on beside the pull request: models, and how they are asked. *connect* opens the
    judges, given what the month has cost so far and where to book what they spend.
    Raises as `run_items`.
    """
    with run.database.transaction() as connection:
        items = [
            WorkItem(pr.item, _inputs(pr, asked), _Screened(pr.key, _rejection(pr)))
            for pr in iterate_done(connection, run.month, Stage.PULL_REQUESTS)
        ]
        spent = Cost.total(spending_of(connection, run.month).values())

    def book(cost: Cost) -> Cost:
        with run.database.transaction() as connection:
            return book_call(connection, Spent(run.month, run.stage, run.run_id, cost))

    def read(key: PullRequestKey) -> tuple[PullRequest, bytes]:
        with run.database.transaction() as connection:
            pr = pull_request_of(connection, run.month, key)
            return pr, patch_of(connection, pr)

    async def judge(item: WorkItem[_Screened]) -> Outcome[Classification]:
        if item.value.rejection is not None:
            raise item.value.rejection
        pr, patch = await asyncio.to_thread(read, item.value.key)
        verdict, cost = await classify(pr.facts, patch, judges)
        rejection = None if verdict.is_performance else Rejection(RejectionReason.NOT_PERFORMANCE, verdict.reason)
        return Outcome(verdict, cost, f"{verdict.category}, {verdict.difficulty}", rejection=rejection)

    async with connect(spent, book) as judges:
        return await run_items(run, items, judge, CLASSIFICATIONS.save)


def _rejection(pr: PullRequest) -> Rejection | None:
    try:
        screen(pr)
    except Rejection as rejection:
        return rejection.with_traceback(None)
    return None


def _inputs(pr: PullRequest, asked: Sequence[object]) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "labels", "linked_issues"})
    return fingerprint(Stage.CLASSIFICATIONS, facts, pr.change.patch_sha256, *asked, PROMPT_VERSION)
