"""The issues behind a pull request: its references, and theirs, followed breadth-first.

Nothing written after a moment, the merge or earlier, is read, as it may reveal the solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment, ThreadKind, UnreadableLink
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .references import ThreadReference
from .source import MeteredClient
from .threads import Thread, ThreadNode, as_it_stood, read_threads

DEPTH = 2
LIMIT = 6
MOST_PER_LEVEL = 50


async def walk_links(
    client: GitHubTransport,
    repository: str,
    number: int,
    *,
    before: datetime | None = None,
    issues_before: datetime | None = None,
    depth: int = DEPTH,
    limit: int = LIMIT,
    only_issues: bool = True,
) -> LinkWalk:
    """Return at most *limit* issues to which `repository#number` leads in *depth* steps, as they stood at the merge.

    With *only_issues*, pull requests are traversed and not returned. *before* replaces the merge; an unmerged pull
    request is read in its current state. Linked threads are read as they stood *issues_before*, by default the same
    moment. References come from `closingIssuesReferences`, the body, the comments and the timeline, nearest first and
    then in that order; 50 per level are followed.

    Costs 1 request and 1 point for the pull request, 1 request and at most 3 points for each level that is needed to
    fill *limit*; 1 of both more for each 50 bodies that were edited after the merge, and for each page of more than
    100 comments or events.

    An unreadable reference is recorded and skipped: vanished, converted, or private (unless it is in the pull request's
    own repository, because nothing private may enter a public statement). Raises ItemFailure (`vanished`, `incomplete`)
    if that is the pull request itself, and OutsideSystemError if GitHub is dead.
    """
    name = ThreadReference(repository, number)
    root = (await read_threads(client, [name]))[name]
    if isinstance(root, UnreadableLink):
        kind = FailureKind.VANISHED if root.reason == "not_found" else FailureKind.INCOMPLETE
        raise ItemFailure(kind, f"GitHub does not show {name}", why=root.reason)
    if root.kind != "PullRequest":
        raise ItemFailure(FailureKind.NOT_A_PULL_REQUEST, f"{name} is an issue", remedy="Name a pull request")
    moment = before or root.merged_at
    return await _Walk(client, root, moment, issues_before or moment, limit, only_issues).walk(depth)


class LinkSource(MeteredClient):
    """Walks over a client."""

    async def walk(self, facts: MergedPullRequest) -> tuple[LinkWalk, Cost]:
        """Return the result of `walk_links` for a merged pull request, and its cost; raises as it does.

        Issues are read as they stood before it was opened: from then on, people may speak of its solution.
        """
        with self.client.account() as account:
            walk = await walk_links(
                self.client,
                facts.repository,
                facts.number,
                before=facts.merged_at,
                issues_before=facts.created_at,
            )
        return walk, account.cost


@dataclass
class _Walk:
    client: GitHubTransport
    root: ThreadNode
    moment: datetime | None
    issues_before: datetime | None
    limit: int
    only_issues: bool
    links: list[Link] = field(default_factory=list)
    unreadable: list[UnreadableLink] = field(default_factory=list)
    partly_read: list[str] = field(default_factory=list)
    later: list[ThreadComment] = field(default_factory=list)
    left_out: int = 0
    _names: set[tuple[str, int]] = field(default_factory=set)
    _ids: set[str] = field(default_factory=set)

    async def walk(self, depth: int) -> LinkWalk:
        (root,) = await as_it_stood(self.client, [self.root], self.moment)
        self._ids.add(self.root.id)
        self._names.add(root.name.key)
        self._note(root)
        # everything on the pull request was written after it was opened
        self.later += root.link.comments
        level: Sequence[Thread] = [root]
        for distance in range(1, depth + 1):
            level = await self._next(level)
            self.links += [
                reference.link.model_copy(update={"distance": distance})
                for reference in level
                if self._is_wanted(reference)
            ]
            if not level or len(self.links) >= self.limit:
                break
        self.left_out += max(0, len(self.links) - self.limit)
        return LinkWalk(
            title=root.link.title,
            body=root.link.body,
            links=tuple(self.links[: self.limit]),
            later=tuple(self.later),
            unreadable=tuple(self.unreadable),
            left_out=self.left_out,
            partly_read=tuple(self.partly_read),
        )

    async def _next(self, level: Sequence[Thread]) -> list[Thread]:
        """Return the new references of *level*, as they were before the moment."""
        named: dict[tuple[str, int], ThreadReference] = {}
        for reference in (reference for thread in level for reference in thread.references):
            if reference.key not in self._names:
                named.setdefault(reference.key, reference)
        self._names |= named.keys()
        asked = list(named.values())[:MOST_PER_LEVEL]
        self.left_out += len(named) - len(asked)
        if not asked:
            return []
        answers = await read_threads(self.client, asked)
        linked: list[ThreadNode] = []
        for reference in asked:
            node = answers[reference]
            if isinstance(node, UnreadableLink):
                self.unreadable.append(node)
            elif self._is_new(node):
                linked.append(node)
        threads = await as_it_stood(self.client, linked, self.issues_before)
        for thread in threads:
            self._note(thread)
        return list(threads)

    def _is_new(self, node: ThreadNode) -> bool:
        """Return True if *node* is new, under any name, and may be shown."""
        if node.id in self._ids or (self.issues_before is not None and node.created_at >= self.issues_before):
            return False
        self._ids.add(node.id)
        self._names.add(node.name.key)
        home = self.root.repository.name_with_owner
        if node.repository.is_private and node.repository.name_with_owner != home:
            self.unreadable.append(UnreadableLink(name=str(node.name), reason="private"))
            return False
        return True

    def _is_wanted(self, thread: Thread) -> bool:
        return thread.link.kind is ThreadKind.ISSUE or not self.only_issues

    def _note(self, thread: Thread) -> None:
        self.later += thread.later
        if thread.partly_read:
            self.partly_read.append(str(thread.name))
