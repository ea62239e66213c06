"""All results of searches: full pages, and a last one with the rest, since requested items cost points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .counting import Counted
from .nodes import PullRequestNode, SearchPage, read
from .queries import merged_pull_requests
from .search_limits import PUBLIC, SearchLimits
from .windows import search_text

SMALLEST_PAGE = 10
SLOW_SECONDS = 5.0
"""Half the time that GitHub has for an answer: after a page as slow as that, the next ones are half as long."""


@dataclass
class PageSizes:
    """Page sizes that GitHub could answer, by repository id: a page that is too heavy is not requested again."""

    limits: SearchLimits = PUBLIC
    known: dict[int, int] = field(default_factory=dict)

    def of(self, searches: Iterable[Counted]) -> int:
        """Return the size for a page of *searches*: the smallest of their repositories'."""
        return min((self.known.get(search.repository.id, self.limits.page) for search in searches), default=0)

    def halve(self, searches: Iterable[Counted], size: int) -> None:
        """Remember that pages of *size* are too heavy for the repositories of *searches* together."""
        self.known |= {search.repository.id: max(SMALLEST_PAGE, size // 2) for search in searches}


@dataclass
class SearchResult:
    """Results of one search so far, and the total that each page reported."""

    searched: Counted
    nodes: list[PullRequestNode] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """GitHub's messages about nodes that it failed to load, or why it returned no more."""
    after: str | None = None
    left: int = 0
    """Number of the counted results that are still to be requested; 0 if there are no more."""

    def __post_init__(self) -> None:
        """Nothing has been shown yet."""
        self.left = self.searched.count

    def take(self, answer: GraphQLAnswer, alias: str) -> None:
        """Add the page that came back as *alias*."""
        self.complaints += [str(error) for error in answer.errors if error.path[:1] == (alias,)]
        try:
            page = read(SearchPage, answer.data.get(alias), f"what {self.searched.name} merged")
        except ItemFailure as failure:
            self.fail(failure)
            return
        self.nodes += [node for node in page.nodes if node is not None]
        self.counts.append(page.issue_count)
        self.after = page.page_info.end_cursor
        more = page.page_info.has_next_page and self.after and page.nodes
        self.left = max(0, self.left - len(page.nodes)) if more else 0

    def fail(self, failure: ItemFailure) -> None:
        """Ask for no more of it."""
        self.complaints.append(str(failure))
        self.left = 0


async def read_request(client: GitHubTransport, searches: Sequence[Counted], sizes: PageSizes) -> list[SearchResult]:
    """Page through *searches* together, as far as they were counted, in the order given, in pages of *sizes*.

    A refused search counts as not found, with GitHub's messages as the reason.
    """
    results = [SearchResult(search) for search in searches]
    while any(result.left for result in results):
        size = sizes.of(result.searched for result in results if result.left)
        asked = _page(results, size)
        variables: dict[str, object] = {}
        for index, (result, first) in enumerate(asked):
            text = search_text(result.searched.name, result.searched.window)
            variables |= {f"q{index}": text, f"first{index}": first, f"after{index}": result.after}
        try:
            answer = await client.graphql(merged_pull_requests(len(asked)), variables)
        except ItemFailure as failure:
            # GitHub answers 502 to a page whose pull requests are too heavy together.
            if failure.kind == FailureKind.OVERLOADED and size > SMALLEST_PAGE:
                sizes.halve((result.searched for result, _ in asked), size)
                continue
            for result, _ in asked:
                result.fail(failure)
            continue
        if answer.seconds >= SLOW_SECONDS and (shown := sum(first for _, first in asked)) > SMALLEST_PAGE:
            sizes.halve((result.searched for result, _ in asked), shown)
        for index, (result, _) in enumerate(asked):
            result.take(answer, f"s{index}")
    return results


def _page(results: Iterable[SearchResult], size: int) -> list[tuple[SearchResult, int]]:
    """The next searches to ask, and for how many pull requests each: *size* together at most."""
    asked: list[tuple[SearchResult, int]] = []
    for result in results:
        first = min(result.left, size)
        if first:
            asked.append((result, first))
            size -= first
    return asked
