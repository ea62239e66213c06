"""Every pull request that repositories merged in a month: counted by GitHub, and taken in completely.

First every repository is counted, many in one request. Small repositories share search requests; windows larger than
search shows are split by time. Results must add up to the counts, and have all that the repository's own list has; one
that does not agree is counted and searched again separately, and then fails by name. Of a window that search shows, but
not whole, what it still lacks is read by number. None is ever short, and none affects another.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.intake import FinishWindow, MergedWindow
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount, MergedPullRequest
from formulacode_dagster.models.reasons import TRANSIENT_KINDS, FailureKind
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .completeness import fault_of
from .concurrency import gather_or_raise
from .counting import Counted, NoWindow, Question, count_merged
from .linked import whole_pull_request
from .listing import Listed, listed_merges, unsearched
from .nodes import PullRequestNode
from .packing import cut, join, pack
from .paging import PageSizes, SearchResult, read_request
from .reading import read_pull_request
from .search_limits import PUBLIC, SearchLimits
from .windows import Window

ATTEMPTS = 3


async def take_in(
    client: GitHubTransport,
    month: Month,
    repositories: Sequence[Repository],
    finish: FinishWindow,
    limits: SearchLimits = PUBLIC,
) -> None:
    """Take in the pull requests that *repositories* merged in *month*, and *finish* each of them.

    An ItemFailure is `vanished` if the repository is gone, `incomplete` if GitHub's count cannot be reached, or as in
    GitHubClient; a Rejection says that it is archived, private or empty. Raises OutsideSystemError and
    ConfigurationError; repositories not finished by then are not taken in.
    """
    await _Intake(client, month, finish, limits).round(repositories, attempt=1)


class _Intake:
    def __init__(self, client: GitHubTransport, month: Month, finish: FinishWindow, limits: SearchLimits) -> None:
        self._client = client
        self._month = month
        self._window = Window(month.start, month.end)
        self._finish = finish
        self._limits = limits
        self._sizes = PageSizes(limits)
        self._listed: dict[int, Listed] = {}
        self._spent: dict[int, Cost] = defaultdict(Cost)

    async def round(self, repositories: Sequence[Repository], attempt: int) -> None:
        """Count *repositories*, search them, judge; in the first attempt several share a request."""
        with self._client.account() as account:
            counted, ended = await self._count(repositories)
            parts = await self._cut([window for window in counted if window.count > self._limits.shown], ended)
        sizes = {window.repository.id: window.count for window in counted}
        self._charge(account.cost, [(repository, sizes.get(repository.id, 0)) for repository in repositories])
        for repository in repositories:
            if repository.id in ended:
                self._end(repository, ended[repository.id])
        standing = [window for window in counted if window.repository.id not in ended]
        small = [window for window in standing if window.count <= self._limits.shown]
        await self._list(standing)
        again = await self._end_empty([window for window in small if not window.count], attempt)
        searched = [(window,) for window in small if window.count] if attempt > 1 else pack(small, self._limits)
        large = [window for window in standing if window.count > self._limits.shown]
        await gather_or_raise(
            [
                *(self._search(group, group, attempt) for group in searched),
                *(
                    self._search((window,), join(parts[window.repository.id], self._limits), attempt)
                    for window in large
                ),
                *([self.round(again, attempt + 1)] if again else []),
            ]
        )

    async def _list(self, counted: Sequence[Counted]) -> None:
        """Read the repositories' own lists, each once, before any search: what is merged later is no contradiction."""
        unread = [window for window in counted if not isinstance(self._listed.get(window.repository.id), frozenset)]
        with self._client.account() as account:
            self._listed |= await listed_merges(self._client, unread)
        self._charge(account.cost, [(window.repository, 0) for window in unread])

    async def _end_empty(self, empty: Sequence[Counted], attempt: int) -> list[Repository]:
        """End the windows of *empty* that the repositories' own lists confirm; return those to count again."""
        again: list[Repository] = []
        for window in empty:
            end = await self._complete(window, (), attempt)
            if self._may_pass(end, attempt):
                again.append(window.repository)
            else:
                self._end(window.repository, end)
        return again

    @staticmethod
    def _may_pass(end: MergedWindow | ItemFailure, attempt: int) -> bool:
        return isinstance(end, ItemFailure) and end.kind in TRANSIENT_KINDS and attempt < ATTEMPTS

    async def _count(self, repositories: Sequence[Repository]) -> tuple[list[Counted], dict[int, NoWindow]]:
        questions = [Question(repository, repository.full_name, self._window) for repository in repositories]
        counted: list[Counted] = []
        ended: dict[int, NoWindow] = {}
        for question, answer in zip(questions, await count_merged(self._client, questions), strict=True):
            if isinstance(answer, Counted):
                counted.append(answer)
            else:
                ended[question.repository.id] = answer
        return counted, ended

    async def _cut(self, large: Iterable[Counted], ended: dict[int, NoWindow]) -> dict[int, list[Counted]]:
        """Split the windows of *large* into parts that search can show, counted together; unsplittable ones have
        *ended*.
        """
        parts: dict[int, list[Counted]] = defaultdict(list)
        pending = list(large)
        while pending:
            questions: list[Question] = []
            for large_window in pending:
                windows = cut(large_window, self._limits)
                if not windows:
                    second, shown = large_window.window.qualifier, self._limits.shown
                    why = f"{large_window.count} were merged in the second {second}, search shows {shown}"
                    ended[large_window.repository.id] = self._incomplete(large_window.name, why)
                questions += [Question(large_window.repository, large_window.name, window) for window in windows]
            pending = []
            for question, answer in zip(questions, await count_merged(self._client, questions), strict=True):
                if not isinstance(answer, Counted):
                    ended[question.repository.id] = answer
                elif answer.count > self._limits.shown:
                    pending.append(answer)
                else:
                    parts[answer.repository.id].append(answer)
        return parts

    async def _search(self, counted: Sequence[Counted], searches: Sequence[Counted], attempt: int) -> None:
        """Make *searches*, which are the windows of *counted* or the parts of one of them, and end or ask again."""
        with self._client.account() as account:
            requests = pack(searches, self._limits)
            pages = await gather_or_raise(read_request(self._client, request, self._sizes) for request in requests)
            results: dict[int, list[SearchResult]] = defaultdict(list)
            for result in itertools.chain.from_iterable(pages):
                results[result.searched.repository.id].append(result)
            windows = await gather_or_raise(
                self._complete(asked, results[asked.repository.id], attempt) for asked in counted
            )
        self._charge(account.cost, [(asked.repository, asked.count) for asked in counted])
        again: list[Repository] = []
        for asked, window in zip(counted, windows, strict=True):
            if self._may_pass(window, attempt):
                again.append(asked.repository)
            else:
                self._end(asked.repository, window)
        if again:
            await self.round(again, attempt + 1)

    async def _complete(
        self, counted: Counted, results: Sequence[SearchResult], attempt: int
    ) -> MergedWindow | ItemFailure:
        fault, listed = fault_of(counted, results), self._listed[counted.repository.id]
        if fault:
            return self._incomplete(counted.name, fault)
        if isinstance(listed, ItemFailure):
            return listed
        nodes = [node for result in results for node in result.nodes]
        missed = sorted(listed - {node.number for node in nodes})
        # an index that shows nothing at all lacks more than the list's newest
        if missed and (attempt < ATTEMPTS or not nodes):
            return unsearched(counted, missed)
        try:
            pull_requests = await gather_or_raise(
                [
                    *(self._pull_request(counted, node) for node in nodes),
                    *(read_pull_request(self._client, counted.name, number) for number in missed),
                ]
            )
        except ItemFailure as failure:
            return failure
        count = IntakeCount(
            month=self._month.key,
            repository_id=counted.repository.id,
            repository=counted.name,
            reported=counted.count + len(missed),
            stored=len(pull_requests),
            unsearched=tuple(missed),
        )
        return MergedWindow(tuple(sorted(pull_requests, key=lambda pull_request: pull_request.number)), count)

    async def _pull_request(self, counted: Counted, node: PullRequestNode) -> MergedPullRequest:
        return await whole_pull_request(
            self._client, node, month=self._month, repository_id=counted.repository.id, repository=counted.name
        )

    def _charge(self, cost: Cost, weights: Sequence[tuple[Repository, int]]) -> None:
        for (repository, _), share in zip(weights, split_cost(cost, [weight for _, weight in weights]), strict=True):
            self._spent[repository.id] += share

    def _end(self, repository: Repository, end: MergedWindow | NoWindow) -> None:
        cost = self._spent.pop(repository.id, Cost())
        if isinstance(end, MergedWindow):
            end = replace(end, cost=cost)
        elif isinstance(end, ItemFailure):
            end.cost = cost
        self._finish(repository, end)

    def _incomplete(self, name: str, why: str) -> ItemFailure:
        return ItemFailure(
            FailureKind.INCOMPLETE, f"the window {self._month} of {name} is not complete", why=why, remedy="Try again"
        )


def split_cost(cost: Cost, weights: Sequence[int]) -> list[Cost]:
    """*cost* in shares proportional to *weights*, equal ones when all are 0; none for no weights.

    Whole numbers are divided by largest remainder, so nothing is lost to rounding.
    """
    if not weights:
        return []
    weights = weights if any(weights) else [1] * len(weights)
    parts: dict[str, list[int] | list[float]] = {}
    for name, value in cost.model_dump().items():
        parts[name] = _whole(value, weights) if isinstance(value, int) else _fractions(value, weights)
    return [Cost.model_validate({name: values[at] for name, values in parts.items()}) for at in range(len(weights))]


def _whole(value: int, weights: Sequence[int]) -> list[int]:
    total = sum(weights)
    parts = [value * weight // total for weight in weights]
    remainders = sorted(range(len(weights)), key=lambda at: (-(value * weights[at] % total), at))
    for at in remainders[: value - sum(parts)]:
        parts[at] += 1
    return parts


def _fractions(value: float, weights: Sequence[int]) -> list[float]:
    total = sum(weights)
    return [value * weight / total for weight in weights]
