"""A merged pull request whole: the labels and closing issues that a page cuts short are completed by paging.

Nothing written about an issue after the pull request was opened is read, as it may reveal the solution.
"""

from __future__ import annotations

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.log import GHOST
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .connections import Node, read_nodes
from .nodes import Connection, IssueNode, NamedNode, PullRequestNode
from .queries import PULL_REQUEST_CLOSING_ISSUES, PULL_REQUEST_LABELS
from .versions import bodies_before

_LABELS, _ISSUES = Connection[NamedNode], Connection[IssueNode]


async def whole_pull_request(
    client: GitHubTransport, node: PullRequestNode, *, month: Month, repository_id: int, repository: str
) -> MergedPullRequest:
    """*node*, merged in *month*, with all that a page cut short; raises ItemFailure (`incomplete`)."""
    return MergedPullRequest(
        month=month.key,
        repository_id=repository_id,
        repository=repository,
        number=node.number,
        title=node.title,
        body=node.body,
        author=node.author.login if node.author else GHOST,
        labels=await _labels(client, node),
        created_at=node.created_at,
        merged_at=node.merged_at,
        base_ref=node.base_ref_name,
        head_sha=node.head_ref_oid,
        merge_commit_sha=node.merge_commit.oid if node.merge_commit else "",
        commit_count=node.commits.total_count,
        changed_files=node.changed_files,
        linked_issues=await _closing_issues(client, node),
    )


async def _labels(client: GitHubTransport, pull_request: PullRequestNode) -> tuple[str, ...]:
    nodes = await _whole(client, pull_request.labels, _LABELS, PULL_REQUEST_LABELS, pull_request.id, "labels")
    return tuple(sorted(node.name for node in nodes))


async def _closing_issues(client: GitHubTransport, pull_request: PullRequestNode) -> tuple[LinkedIssue, ...]:
    """Return those opened before it, by repository and number."""
    opened_at = pull_request.created_at
    nodes = await _whole(
        client,
        pull_request.closing_issues_references,
        _ISSUES,
        PULL_REQUEST_CLOSING_ISSUES,
        pull_request.id,
        "closingIssuesReferences",
    )
    early = [node for node in nodes if node.created_at < opened_at]
    bodies = await bodies_before(client, early, opened_at)
    issues = [
        LinkedIssue(
            repository=node.repository.name_with_owner,
            number=node.number,
            title=node.title,
            body=bodies[node.id],
            author=node.author.login if node.author else GHOST,
            created_at=node.created_at,
        )
        for node in early
    ]
    return tuple(sorted(issues, key=lambda issue: (issue.repository, issue.number)))


async def _whole(
    client: GitHubTransport,
    page: Connection[Node] | None,
    model: type[Connection[Node]],
    query: str,
    node_id: str,
    field: str,
) -> list[Node]:
    """Return all nodes of a connection starting with *page*; restarted if that does not lead to the count."""
    nodes, missing = await read_nodes(client, node_id, page, model, query, field, insist=True)
    if missing:
        shown = f"GitHub shows {len(nodes)} of {len(nodes) + missing} {field} of {node_id}"
        raise ItemFailure(FailureKind.INCOMPLETE, shown, remedy="Try again")
    return nodes
