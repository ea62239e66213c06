"""The issues behind a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from formulacode_dagster.models.links import Link, LinkWalk, UnreadableLink
from formulacode_dagster.sources.github.links import DEPTH, LIMIT, walk_links
from formulacode_dagster.sources.github.transport import client as platform

from .client import PR, GitHubClient


@dataclass(frozen=True)
class Links(Sequence[Link]):
    """Result of a walk, nearest first, and its unreadable links."""

    walk: LinkWalk

    @property
    def unreadable(self) -> tuple[UnreadableLink, ...]:
        """References that GitHub does not show."""
        return self.walk.unreadable

    def __len__(self) -> int:
        return len(self.walk.links)

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Link]: ...
    def __getitem__(self, index: int | slice) -> Link | Sequence[Link]:
        return self.walk.links[index]


async def scrape_links(
    pr: PR,
    *,
    client: platform.GitHubTransport | None = None,
    depth: int = DEPTH,
    only_issues: bool = True,
    limit: int = LIMIT,
) -> Links:
    """Return at most *limit* issues that *pr* leads to in *depth* steps, each as it stood at the merge.

    With *client*, or one of the settings. See `github.links.walk_links`, which the pipeline uses as well, for its
    links, cost and errors.
    """
    if client is None:
        async with GitHubClient() as own:
            return await scrape_links(pr, client=own, depth=depth, only_issues=only_issues, limit=limit)
    walk = await walk_links(
        client,
        pr.repository,
        pr.issue_number,
        before=pr.facts.merged_at if pr.facts else None,
        depth=depth,
        limit=limit,
        only_issues=only_issues,
    )
    return Links(walk)
