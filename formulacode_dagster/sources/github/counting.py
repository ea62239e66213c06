"""Counts of the pull requests merged by each repository in a window, and its current name: before any search.

Search finds nothing under a former name and reports zero; so each count comes with GitHub's name for the repository's
id, and a count under another name is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .concurrency import gather_or_raise
from .nodes import RepositoryStatus, SearchCount, read
from .queries import merged_counts
from .windows import Window, search_text

COUNTS_PER_REQUEST = 25
"""100 would still be one point, but GitHub gives a query 10 seconds, and each of them is a search."""
ATTEMPTS = 3


@dataclass(frozen=True)
class Question:
    """Count of the pull requests of *repository*, called *name*, merged in *window*."""

    repository: Repository
    name: str
    window: Window


@dataclass(frozen=True)
class Counted(Question):
    """A question with its answer; `name` is GitHub's name for the repository."""

    count: int


@dataclass(frozen=True)
class _Unanswered:
    """Not answered: ask again."""

    question: Question
    why: str


NoWindow = ItemFailure | Rejection
"""Why a repository has no window: an error, or a state that excludes it."""


async def count_merged(client: GitHubTransport, questions: Sequence[Question]) -> list[Counted | NoWindow]:
    """Return the answers to *questions* in order; an error in place of an answer concerns that one only.

    Errors: ItemFailure `vanished` for a repository that is gone, `incomplete` for one that GitHub does not report;
    Rejection for one that is private, empty, or archived since before its month, and was not at discovery.
    """
    batches = [questions[at : at + COUNTS_PER_REQUEST] for at in range(0, len(questions), COUNTS_PER_REQUEST)]
    answered = await gather_or_raise(_batch(client, batch) for batch in batches)
    return [answer for answers in answered for answer in answers]


async def _batch(client: GitHubTransport, questions: Sequence[Question]) -> list[Counted | NoWindow]:
    answers: dict[int, Counted | NoWindow] = {}
    pending = dict(enumerate(questions))
    why: dict[int, str] = {}
    for _ in range(ATTEMPTS):
        batch = await _request(client, list(pending.values()))
        again: dict[int, Question] = {}
        for position, answer in zip(pending, batch, strict=True):
            if isinstance(answer, _Unanswered):
                again[position], why[position] = answer.question, answer.why
            else:
                answers[position] = answer
        pending = again
        if not pending:
            break
    for position, question in pending.items():
        answers[position] = ItemFailure(
            FailureKind.INCOMPLETE,
            f"GitHub does not count the merges of {question.name} merged",
            why=why[position],
            remedy="Try again",
        )
    return [answers[position] for position in range(len(questions))]


async def _request(client: GitHubTransport, questions: Sequence[Question]) -> list[Counted | NoWindow | _Unanswered]:
    variables: dict[str, object] = {"ids": [question.repository.node_id for question in questions]}
    for index, question in enumerate(questions):
        variables[f"q{index}"] = search_text(question.name, question.window)
    try:
        answer = await client.graphql(merged_counts(len(questions)), variables)
    except ItemFailure as failure:
        if len(questions) == 1:
            what = f"what {questions[0].name} merged cannot be counted"
            return [ItemFailure(failure.kind, what, why=str(failure), remedy="Try again")]
        # `search` is never null in GitHub's schema, so one that fails takes the whole answer with it.
        half = len(questions) // 2
        return [*await _request(client, questions[:half]), *await _request(client, questions[half:])]
    return [_answer(answer, index, question) for index, question in enumerate(questions)]


def _answer(answer: GraphQLAnswer, index: int, question: Question) -> Counted | NoWindow | _Unanswered:
    nodes = answer.data.get("nodes") or []
    raw = nodes[index] if index < len(nodes) else None
    if raw is None and answer.missing("nodes", index):
        return ItemFailure(
            FailureKind.VANISHED, f"{question.name} is gone from GitHub", why=answer.words("nodes", index)
        )
    count = answer.data.get(f"c{index}")
    if raw is None or count is None:
        path: tuple[str | int, ...] = ("nodes", index) if raw is None else (f"c{index}",)
        return _Unanswered(question, answer.words(*path) or f"empty response at {'.'.join(map(str, path))}")
    try:
        status = read(RepositoryStatus, raw, question.name)
        size = read(SearchCount, count, f"the merged window of {question.name}").issue_count
    except ItemFailure as failure:
        return _Unanswered(question, str(failure))
    if status.database_id != question.repository.id:
        return ItemFailure(
            FailureKind.INCOMPLETE,
            f"the node id of {question.name} leads to another repository",
            why=f"{status.name_with_owner} has id {status.database_id}, not {question.repository.id}",
            remedy="Materialize the month's repositories again",
        )
    no_window = _without_window(status, Month.parse(question.repository.month))
    if no_window is not None:
        return no_window
    if status.name_with_owner.lower() != question.name.lower():
        return _Unanswered(replace(question, name=status.name_with_owner), f"it is called {status.name_with_owner} now")
    return Counted(question.repository, status.name_with_owner, question.window, size)


def _without_window(status: RepositoryStatus, month: Month) -> Rejection | None:
    # one that was archived later may have merged pull requests in the month
    archived = status.archived_at is not None and status.archived_at <= month.start
    states = (
        (status.is_private, RejectionReason.PRIVATE),
        (archived, RejectionReason.ARCHIVED),
        (status.is_empty, RejectionReason.EMPTY),
    )
    for holds, reason in states:
        if holds:
            return Rejection(reason, f"{status.name_with_owner} is {reason}, which it was not at discovery")
    return None
