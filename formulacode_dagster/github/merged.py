"""Every pull request merged in a window: counted by GitHub, and taken in to the last one.

Search stops at 1,000 results without a word. So each window's count is read with its first page, a window above the cap
is split by time, and one whose results do not add up to its count is asked again, then failed; never short.
"""

from __future__ import annotations

from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount, MergedPullRequest
from formulacode_dagster.models.repository import Repository

from .answers import GraphQLAnswer
from .client import GitHubClient
from .linked import closing_issues, labels
from .nodes import PullRequestNode, RepositoryRef, SearchPage, read
from .queries import MERGED_PULL_REQUESTS
from .windows import Window

SEARCH_CAP = 1_000
FULL_LEAF = 800
"""Aimed-at size of a part when a window is split: merges are not spread evenly."""
PAGE = 100
SMALLEST_PAGE = 10
ATTEMPTS = 3


@dataclass(frozen=True)
class MergedWindow:
    """The window of one repository, by number, and how it compares with GitHub's count."""

    pull_requests: tuple[MergedPullRequest, ...]
    count: IntakeCount


async def merged_pull_requests(client: GitHubClient, repository: Repository, month: Month) -> MergedWindow:
    """All pull requests of *repository* with `merged_at` in *month*.

    Raises ItemFailure: `vanished` when the repository is gone, `incomplete` when GitHub's count cannot be reached.
    """
    return await _Intake(client, repository, month).window()


class _Intake:
    def __init__(self, client: GitHubClient, repository: Repository, month: Month) -> None:
        self._client = client
        self._repository = repository
        self._month = month
        self._name = repository.full_name

    async def window(self) -> MergedWindow:
        nodes = await self._leaves(Window(self._month.start, self._month.end))
        found = {node.number: node for node in nodes}
        pull_requests = [await self._complete(found[number]) for number in sorted(found)]
        count = IntakeCount(
            month=self._month.key,
            repository_id=self._repository.id,
            repository=self._name,
            reported=len(nodes),
            stored=len(pull_requests),
        )
        return MergedWindow(tuple(pull_requests), count)

    async def _leaves(self, window: Window) -> list[PullRequestNode]:
        shortage = ""
        for _ in range(ATTEMPTS):
            name = self._name
            first = await self._page(window, None)
            if self._name != name:
                # Search does not follow renames: what the old name found says nothing.
                first = await self._page(window, None)
            if first.issue_count > SEARCH_CAP:
                nodes, reported = await self._split(window, first.issue_count), first.issue_count
            else:
                nodes, reported = await self._follow(window, first)
            numbers = {node.number for node in nodes}
            if len(nodes) == len(numbers) == reported:
                return nodes
            shortage = f"{len(numbers)} of {reported} in {window.qualifier}"
        raise self._incomplete(shortage)

    async def _split(self, window: Window, count: int) -> list[PullRequestNode]:
        if window.seconds <= 1:
            raise self._incomplete(f"{count} were merged in the second {window.qualifier}, search shows {SEARCH_CAP}")
        nodes = []
        for part in window.split(-(-count // FULL_LEAF)):
            nodes += await self._leaves(part)
        return nodes

    async def _follow(self, window: Window, page: SearchPage) -> tuple[list[PullRequestNode], int]:
        """The nodes from *page* on, and the count as the last page tells it."""
        nodes = [node for node in page.nodes if node is not None]
        while page.page_info.has_next_page and page.page_info.end_cursor:
            page = await self._page(window, page.page_info.end_cursor)
            nodes += [node for node in page.nodes if node is not None]
        return nodes, page.issue_count

    async def _page(self, window: Window, after: str | None) -> SearchPage:
        size = PAGE
        while True:
            variables = {
                "repository": self._repository.node_id,
                "search": f"repo:{self._name} is:pr is:merged merged:{window.qualifier}",
                "first": size,
                "after": after,
            }
            try:
                answer = await self._client.graphql(MERGED_PULL_REQUESTS, variables)
            except ItemFailure as failure:
                # GitHub answers 502 to a page whose pull requests are too heavy together.
                if failure.kind != "overloaded" or size <= SMALLEST_PAGE:
                    raise
                size //= 2
                continue
            self._resolve(answer)
            page = read(SearchPage, answer.data.get("search"), f"the merged window of {self._name}")
            for node in page.nodes:
                self._belongs(node)
            return page

    def _resolve(self, answer: GraphQLAnswer) -> None:
        raw = answer.data.get("repository")
        if not raw:
            if answer.missing("repository") or not answer.errors:
                raise ItemFailure("vanished", f"{self._name} is gone from GitHub", why=_words(answer))
            raise self._incomplete(f"GitHub does not tell about the repository: {_words(answer)}")
        self._name = read(RepositoryRef, raw, self._name).name_with_owner

    def _belongs(self, node: PullRequestNode | None) -> None:
        if node is None:
            return
        if not self._month.holds(node.merged_at):
            raise self._incomplete(f"search returned #{node.number}, merged at {node.merged_at.isoformat()}")
        if node.repository.database_id != self._repository.id:
            raise self._incomplete(f"search returned #{node.number} of {node.repository.name_with_owner}")

    def _incomplete(self, why: str) -> ItemFailure:
        return ItemFailure(
            "incomplete", f"the window {self._month} of {self._name} is not complete", why=why, remedy="Try again"
        )

    async def _complete(self, node: PullRequestNode) -> MergedPullRequest:
        return MergedPullRequest(
            month=self._month.key,
            repository_id=self._repository.id,
            repository=self._name,
            number=node.number,
            title=node.title,
            body=node.body,
            author=node.author.login if node.author else "ghost",
            labels=await labels(self._client, node),
            created_at=node.created_at,
            merged_at=node.merged_at,
            base_ref=node.base_ref_name,
            head_sha=node.head_ref_oid,
            merge_commit_sha=node.merge_commit.oid if node.merge_commit else "",
            commit_count=node.commits.total_count,
            changed_files=node.changed_files,
            linked_issues=await closing_issues(self._client, node),
        )


def _words(answer: GraphQLAnswer) -> str:
    return "; ".join(str(error) for error in answer.errors)
