"""Texts as they stood at a moment. GitHub shows a body's newest version; the ones before are undone from its history.

https://docs.github.com/en/communities/moderating-comments-and-conversations/tracking-changes-in-a-comment
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .nodes import Connection, EditNode, GitHubRecord, Written, read
from .queries import BODY_VERSIONS

BATCH = 50
ATTEMPTS = 3


class _Versions(GitHubRecord):
    user_content_edits: Connection[EditNode] | None = None


async def bodies_before(client: GitHubTransport, texts: Iterable[Written], moment: datetime | None) -> dict[str, str]:
    """Return the body of each of *texts*, by node id, as it stood before *moment*; the current one if that is None.

    Only bodies edited since cost anything: 1 point and 1 request for 50 of them. A version that was deleted, or is
    older than GitHub's records (2018), is empty, because a later one might reveal the solution. Raises ItemFailure
    (`incomplete`) if GitHub does not show a history to its end.
    """
    by_id = {text.id: text for text in texts}
    bodies = {text.id: text.body for text in by_id.values()}
    if moment is None:
        return bodies
    edited = [text.id for text in by_id.values() if text.last_edited_at is not None and text.last_edited_at >= moment]
    for start in range(0, len(edited), BATCH):
        histories = await _histories(client, edited[start : start + BATCH])
        bodies |= {node_id: _before(history, moment) for node_id, history in histories.items()}
    return bodies


def _before(history: Sequence[EditNode], moment: datetime) -> str:
    versions = [version for version in history if version.edited_at < moment]
    return max(versions, key=lambda version: version.edited_at).diff or "" if versions else ""


async def _histories(client: GitHubTransport, ids: Sequence[str]) -> dict[str, list[EditNode]]:
    """Every version of each; a text that vanished meanwhile has none."""
    histories: dict[str, list[EditNode]] = {}
    waiting = list(ids)
    for _ in range(ATTEMPTS):
        answer = await client.graphql(BODY_VERSIONS, {"ids": waiting, "after": None})
        for index, (node_id, raw) in enumerate(zip(waiting, answer.data.get("nodes") or (), strict=False)):
            if raw is None and answer.missing("nodes", index):
                histories[node_id] = []
                continue
            page = read(_Versions, raw or {}, f"the versions of {node_id}").user_content_edits
            versions = await _to_the_end(client, node_id, page) if page is not None else None
            if versions is not None:
                histories[node_id] = versions
        waiting = [node_id for node_id in waiting if node_id not in histories]
        if not waiting:
            return histories
    raise ItemFailure(
        FailureKind.INCOMPLETE,
        f"GitHub does not show how {len(waiting)} texts, {waiting[0]} first, were edited",
        remedy="Try again",
    )


async def _to_the_end(client: GitHubTransport, node_id: str, page: Connection[EditNode]) -> list[EditNode] | None:
    """All versions from *page* on, None when they are fewer than GitHub counts."""
    nodes = [node for node in page.nodes if node is not None]
    while page.page_info.has_next_page and page.page_info.end_cursor:
        answer = await client.graphql(BODY_VERSIONS, {"ids": [node_id], "after": page.page_info.end_cursor})
        raw = (answer.data.get("nodes") or [None])[0]
        following = read(_Versions, raw or {}, f"the versions of {node_id}").user_content_edits
        if following is None:
            return None
        page = following
        nodes += [node for node in page.nodes if node is not None]
    return nodes if len(nodes) == page.total_count else None
