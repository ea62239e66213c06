"""What a window's page cuts short of a pull request: labels and closing issues, completed by paging.

Nothing of an issue that was written after the merge is taken: it may tell the solution.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.pull_request import LinkedIssue

from .client import GitHubClient
from .nodes import Connection, EditNode, IssueNode, NamedNode, PullRequestNode, read
from .queries import ISSUE_EDITS, PULL_REQUEST_CLOSING_ISSUES, PULL_REQUEST_LABELS

Node = TypeVar("Node")

ATTEMPTS = 3


async def labels(client: GitHubClient, pull_request: PullRequestNode) -> tuple[str, ...]:
    """Every label, by name."""
    nodes = await _whole(
        client, pull_request.labels, Connection[NamedNode], PULL_REQUEST_LABELS, pull_request.id, "labels"
    )
    return tuple(sorted(node.name for node in nodes))


async def closing_issues(client: GitHubClient, pull_request: PullRequestNode) -> tuple[LinkedIssue, ...]:
    """Every issue that the merge closed and that was opened before it, by repository and number."""
    merged_at = pull_request.merged_at
    nodes = await _whole(
        client,
        pull_request.closing_issues_references,
        Connection[IssueNode],
        PULL_REQUEST_CLOSING_ISSUES,
        pull_request.id,
        "closingIssuesReferences",
    )
    issues = [
        LinkedIssue(
            repository=node.repository.name_with_owner,
            number=node.number,
            title=node.title,
            body=await _body_before(client, node, merged_at),
            author=node.author.login if node.author else "ghost",
            created_at=node.created_at,
        )
        for node in nodes
        if node.created_at < merged_at
    ]
    return tuple(sorted(issues, key=lambda issue: (issue.repository, issue.number)))


async def _body_before(client: GitHubClient, issue: IssueNode, moment: datetime) -> str:
    if issue.last_edited_at is None or issue.last_edited_at < moment:
        return issue.body
    edits = await _whole(client, None, Connection[EditNode], ISSUE_EDITS, issue.id, "userContentEdits")
    before = [edit for edit in edits if edit.edited_at < moment]
    # GitHub keeps no version of what was deleted; an empty body tells nothing, a later one might.
    return max(before, key=lambda edit: edit.edited_at).diff or "" if before else ""


async def _whole(
    client: GitHubClient,
    page: Connection[Node] | None,
    model: type[Connection[Node]],
    query: str,
    node_id: str,
    field: str,
) -> list[Node]:
    """All nodes of a connection that starts with *page*; asked for anew when that does not lead to all it counts."""
    shortage = ""
    for _ in range(ATTEMPTS):
        nodes: list[Node] = []
        while True:
            if page is None:
                cursor = None
            else:
                nodes += [node for node in page.nodes if node is not None]
                if not page.page_info.has_next_page:
                    break
                cursor = page.page_info.end_cursor
            answer = await client.graphql(query, {"id": node_id, "after": cursor})
            page = read(model, (answer.data.get("node") or {}).get(field), f"{field} of {node_id}")
        if len(nodes) == page.total_count:
            return nodes
        shortage = f"{len(nodes)} of {page.total_count}"
        page = None
    raise ItemFailure("incomplete", f"GitHub shows {shortage} {field} of {node_id}", remedy="Try again")
