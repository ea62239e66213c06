"""Every pull request that many repositories merged in a month: counted by GitHub, and taken in to the last one.

First every repository is counted, many in one request. Those that merged little share searches, those that merged more
than search shows are cut by time. What a search shows must add up to the counts; a repository for which it does not is
counted and searched again by itself, and then fails by name. None is ever short, and none spoils another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from formulacode_dagster.models.errors import TRANSIENT_KINDS, ItemFailure
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount, MergedPullRequest
from formulacode_dagster.models.repository import Repository

from .client import GitHubClient
from .counting import Counted, Ended, Question, count_merged
from .judging import Judged, judge
from .linked import whole_pull_request
from .nodes import PullRequestNode
from .packing import SEARCH_CAP, Leaf, cut, join, pack
from .paging import read_leaf
from .shares import shared
from .together import together
from .windows import Window

ATTEMPTS = 3

Finish = Callable[[Repository, MergedWindow | Ended], None]
"""Called once for each repository, as soon as it is known how it ends."""


async def take_in(client: GitHubClient, month: Month, repositories: Sequence[Repository], finish: Finish) -> None:
    """Take in what *repositories* merged in *month*, and *finish* each of them.

    An ItemFailure is `vanished` when the repository is gone, `incomplete` when GitHub's count cannot be reached, or as
    GitHubClient has it; a Rejection says that it is archived, private or empty. Raises OutsideSystemError and
    ConfigurationError; those not finished by then are not taken in.
    """
    await _Intake(client, month, finish).round(repositories, attempt=1)


class _Intake:
    def __init__(self, client: GitHubClient, month: Month, finish: Finish) -> None:
        self._client = client
        self._month = month
        self._window = Window(month.start, month.end)
        self._finish = finish
        self._spent: dict[int, Cost] = defaultdict(Cost)

    async def round(self, repositories: Sequence[Repository], attempt: int) -> None:
        """Count *repositories*, search them, judge; in the first attempt several share a search."""
        with self._client.account() as account:
            counted, ended = await self._count(repositories)
            parts = await self._cut([one for one in counted if one.count > SEARCH_CAP], ended)
        sizes = {one.repository.id: one.count for one in counted}
        self._book(account.cost, [(one, sizes.get(one.id, 0)) for one in repositories])
        for repository in repositories:
            if repository.id in ended:
                self._end(repository, ended[repository.id])
        standing = [one for one in counted if one.repository.id not in ended]
        for one in standing:
            if not one.count:
                self._end(one.repository, await self._complete(Judged(one, ())))
        small = [one for one in standing if one.count <= SEARCH_CAP]
        leaves = pack(small) if attempt == 1 else tuple(Leaf((one,)) for one in small if one.count)
        whole = {one.repository.id: one for one in standing}
        searches = [
            *(self._search(leaf.counted, (leaf,), attempt) for leaf in leaves),
            *(self._search((whole[id_],), join(parts[id_]), attempt) for id_ in parts if id_ in whole),
        ]
        await together(searches)

    async def _count(self, repositories: Sequence[Repository]) -> tuple[list[Counted], dict[int, Ended]]:
        questions = [Question(one, one.full_name, self._window) for one in repositories]
        counted: list[Counted] = []
        ended: dict[int, Ended] = {}
        for question, answer in zip(questions, await count_merged(self._client, questions), strict=True):
            if isinstance(answer, Counted):
                counted.append(answer)
            else:
                ended[question.repository.id] = answer
        return counted, ended

    async def _cut(self, large: Iterable[Counted], ended: dict[int, Ended]) -> dict[int, list[Counted]]:
        """The windows of *large* in parts that search can show, counted together; what cannot be cut has *ended*."""
        parts: dict[int, list[Counted]] = defaultdict(list)
        pending = list(large)
        while pending:
            questions: list[Question] = []
            for one in pending:
                windows = cut(one)
                if not windows:
                    why = f"{one.count} were merged in the second {one.window.qualifier}, search shows {SEARCH_CAP}"
                    ended[one.repository.id] = self._incomplete(one.name, why)
                questions += [Question(one.repository, one.name, window) for window in windows]
            pending = []
            for question, answer in zip(questions, await count_merged(self._client, questions), strict=True):
                if not isinstance(answer, Counted):
                    ended[question.repository.id] = answer
                elif answer.count > SEARCH_CAP:
                    pending.append(answer)
                else:
                    parts[answer.repository.id].append(answer)
        return parts

    async def _search(self, counted: Sequence[Counted], leaves: Sequence[Leaf], attempt: int) -> None:
        with self._client.account() as account:
            found = await together(read_leaf(self._client, leaf) for leaf in leaves)
            judged = judge(counted, leaves, found)
            windows = await together(self._complete(one) for one in judged)
        self._book(account.cost, [(one.counted.repository, len(one.nodes)) for one in judged])
        again: list[Repository] = []
        for one, window in zip(judged, windows, strict=True):
            if isinstance(window, ItemFailure) and window.kind in TRANSIENT_KINDS and attempt < ATTEMPTS:
                again.append(one.counted.repository)
            else:
                self._end(one.counted.repository, window)
        if again:
            await self.round(again, attempt + 1)

    async def _complete(self, judged: Judged) -> MergedWindow | ItemFailure:
        counted = judged.counted
        if judged.fault:
            return self._incomplete(counted.name, judged.fault)
        try:
            pull_requests = await together(self._pull_request(counted, node) for node in judged.nodes)
        except ItemFailure as failure:
            return failure
        count = IntakeCount(
            month=self._month.key,
            repository_id=counted.repository.id,
            repository=counted.name,
            reported=counted.count,
            stored=len(pull_requests),
        )
        return MergedWindow(tuple(sorted(pull_requests, key=lambda one: one.number)), count)

    async def _pull_request(self, counted: Counted, node: PullRequestNode) -> MergedPullRequest:
        return await whole_pull_request(
            self._client, node, month=self._month, repository_id=counted.repository.id, repository=counted.name
        )

    def _book(self, cost: Cost, weights: Sequence[tuple[Repository, int]]) -> None:
        for (repository, _), share in zip(weights, shared(cost, [weight for _, weight in weights]), strict=True):
            self._spent[repository.id] += share

    def _end(self, repository: Repository, end: MergedWindow | Ended) -> None:
        cost = self._spent.pop(repository.id, Cost())
        if isinstance(end, MergedWindow):
            end = replace(end, cost=cost)
        elif isinstance(end, ItemFailure):
            end.cost = cost
        self._finish(repository, end)

    def _incomplete(self, name: str, why: str) -> ItemFailure:
        return ItemFailure(
            "incomplete", f"the window {self._month} of {name} is not complete", why=why, remedy="Try again"
        )
