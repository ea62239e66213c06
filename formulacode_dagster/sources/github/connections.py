"""The nodes of a connection that a page cuts short, completed by paging."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .nodes import Connection, read

ATTEMPTS = 3
MOST_PAGES = 10
"""Pages of labels, issues, comments or events read of one thread: 1,000 of each."""

Node = TypeVar("Node")


async def read_nodes(
    client: GitHubTransport,
    node_id: str,
    first: Connection[Node] | None,
    model: type[Connection[Node]],
    query: str,
    field: str,
    *,
    ended: Callable[[Node], bool] = lambda _: False,
    insist: bool = False,
) -> tuple[list[Node], int]:
    """Return the nodes from page *first* on, until one has *ended* the wanted ones; and how many are missing.

    Nodes that GitHub failed to load are requested again. Fewer than counted may be all it shows, since it hides some
    authors; a shortfall is retried only if the caller has to *insist*.
    """
    page, missing = first, 0
    nodes: list[Node] = []
    for _ in range(ATTEMPTS):
        nodes, cursor = [], None
        for _ in range(MOST_PAGES):
            if page is None:
                answer = await client.graphql(query, {"id": node_id, "after": cursor})
                page = read(model, (answer.data.get("node") or {}).get(field), f"{field} of {node_id}")
            nodes += [node for node in page.nodes if node is not None]
            if nodes and ended(nodes[-1]):
                return nodes, 0
            missing = max(0, page.total_count - len(nodes))
            if None in page.nodes:
                break
            if not page.page_info.has_next_page:
                if not missing or not insist:
                    return nodes, missing
                break
            cursor, page = page.page_info.end_cursor, None
        else:
            return nodes, missing
        page = None
    return nodes, missing
