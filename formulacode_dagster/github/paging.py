"""All that one search shows: full pages, and a last one of what is left, since points count what is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure

from .client import GitHubClient
from .nodes import PullRequestNode, SearchPage, read
from .packing import Leaf
from .queries import MERGED_PULL_REQUESTS

PAGE = 100
SMALLEST_PAGE = 10


@dataclass(frozen=True)
class Found:
    """What a search showed: its nodes, and the size of the whole as each page told it."""

    nodes: tuple[PullRequestNode, ...] = ()
    counts: tuple[int, ...] = ()
    words: str = ""
    """What GitHub said of nodes that it failed to load, or why it showed none at all."""


async def read_leaf(client: GitHubClient, leaf: Leaf) -> Found:
    """Page through *leaf*, as far as it was counted; what GitHub refuses is not found, and the words say why."""
    nodes: list[PullRequestNode] = []
    counts: list[int] = []
    words: list[str] = []
    seen, after, size = 0, None, PAGE
    while seen < leaf.count:
        variables = {"search": leaf.text, "first": min(size, leaf.count - seen), "after": after}
        try:
            answer = await client.graphql(MERGED_PULL_REQUESTS, variables)
            page = read(SearchPage, answer.data.get("search"), f"the search {leaf.text!r}")
        except ItemFailure as failure:
            # GitHub answers 502 to a page whose pull requests are too heavy together.
            if failure.kind == "overloaded" and size > SMALLEST_PAGE:
                size //= 2
                continue
            return Found(tuple(nodes), tuple(counts), str(failure))
        nodes += [node for node in page.nodes if node is not None]
        counts.append(page.issue_count)
        words += [str(error) for error in answer.errors]
        seen += len(page.nodes)
        after = page.page_info.end_cursor
        if not (page.page_info.has_next_page and after and page.nodes):
            break
    return Found(tuple(nodes), tuple(counts), "; ".join(words))
