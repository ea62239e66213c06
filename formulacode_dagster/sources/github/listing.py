"""A second opinion on the windows that search shows: the repository's own list of merges, which is another index.

Search reports zero for a repository that its index lacks, or that is gone although its id still resolves; and count and
results both lack a merge that is not indexed yet, however it was merged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .concurrency import gather_or_raise
from .counting import COUNTS_PER_REQUEST, Counted
from .nodes import MergeNode, RepositoryMerges, read
from .queries import newest_merges

MOST_PAGES = 5
"""Pages of 100 that are read of a list."""

Listed = frozenset[int] | ItemFailure
"""Numbers of the window's merges that the repository's list has, or why the list confirms nothing."""


@dataclass
class _List:
    """The list of one repository, as far as it was read."""

    counted: Counted
    numbers: set[int] = field(default_factory=set)
    failure: ItemFailure | None = None
    pages: int = 0
    newest: datetime | None = None
    after: str | None = None
    """Cursor of the next page; None if no more is to be read."""

    def take(self, answer: GraphQLAnswer, alias: str) -> None:
        """Add the page that came as *alias*."""
        counted, self.after = self.counted, None
        raw = answer.data.get(alias)
        if raw is None and answer.missing(alias):
            self.failure = ItemFailure(
                FailureKind.VANISHED,
                f"{counted.name} is gone from GitHub",
                why=f"its id still resolves, its name does not: {answer.words(alias)}",
                remedy="Deny it on the list of repositories if it stays away",
            )
            return
        try:
            if raw is None:
                raise ItemFailure(FailureKind.INCOMPLETE, answer.words(alias) or "empty response")
            page = read(RepositoryMerges, raw, f"the merges of {counted.name}").pull_requests
        except ItemFailure as failure:
            self.failure = unconfirmed(counted, str(failure))
            return
        nodes = [node for node in page.nodes if node is not None]
        self.numbers |= {node.number for node in nodes if node.merged_at and counted.window.holds(node.merged_at)}
        self.pages += 1
        if nodes and page.page_info.has_next_page and self._reaches(nodes):
            self.after = page.page_info.end_cursor

    def _reaches(self, nodes: Sequence[MergeNode]) -> bool:
        """Return True if further pages may reach the window, and few enough of them at the pace so far."""
        start, oldest = self.counted.window.start, nodes[-1].updated_at
        self.newest = self.newest or nodes[0].updated_at
        passed = (self.newest - oldest) / self.pages
        return oldest >= start and self.pages < MOST_PAGES and oldest - start <= passed * (MOST_PAGES - self.pages)


async def listed_merges(client: GitHubTransport, windows: Sequence[Counted]) -> dict[int, Listed]:
    """Return the merges of each of *windows* that its repository's list has, by repository id.

    The list begins with what was updated last, so that all merges of a window are before anything updated earlier. It
    is read to there, if that takes at most `MOST_PAGES`; of older windows only the first page is.

    ItemFailures: `vanished` if the repository's name leads nowhere, `incomplete` if its list cannot be read.
    """
    lists = [_List(counted) for counted in windows]
    pending = lists
    while pending:
        batches = [pending[at : at + COUNTS_PER_REQUEST] for at in range(0, len(pending), COUNTS_PER_REQUEST)]
        await gather_or_raise(_read(client, batch) for batch in batches)
        pending = [listed for listed in pending if listed.after]
    return {listed.counted.repository.id: listed.failure or frozenset(listed.numbers) for listed in lists}


async def _read(client: GitHubTransport, lists: Sequence[_List]) -> None:
    variables: dict[str, object] = {}
    for index, listed in enumerate(lists):
        owner, _, name = listed.counted.name.partition("/")
        variables |= {f"owner{index}": owner, f"name{index}": name, f"after{index}": listed.after}
    try:
        answer = await client.graphql(newest_merges(len(lists)), variables)
    except ItemFailure as failure:
        if len(lists) == 1:
            lists[0].failure, lists[0].after = unconfirmed(lists[0].counted, str(failure)), None
            return
        half = len(lists) // 2
        await _read(client, lists[:half])
        await _read(client, lists[half:])
        return
    for index, listed in enumerate(lists):
        listed.take(answer, f"r{index}")


def unconfirmed(counted: Counted, why: str) -> ItemFailure:
    """The failure of a window that the repository's list does not confirm."""
    found = f"{counted.count} merges" if counted.count else "no merge"
    what = f"search finds {found} of {counted.name} in {counted.window.qualifier}, which is not confirmed"
    return ItemFailure(FailureKind.INCOMPLETE, what, why=why, remedy="Try again")


def unsearched(counted: Counted, missed: Collection[int]) -> ItemFailure:
    """The failure of a window of which search lacks the merges *missed*."""
    return unconfirmed(counted, f"its own list has {len(missed)} more, #{min(missed)} among them")
