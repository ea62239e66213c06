"""The stage `discussions`: follow the references of every performance pull request once."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from formulacode_dagster.models.identity import is_stand_in
from formulacode_dagster.models.intake import Metered
from formulacode_dagster.models.items import Cost, ItemKind, Stage
from formulacode_dagster.models.links import Discussion, LinkWalk
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import DISCUSSIONS
from formulacode_dagster.operating.store.pull_requests import done_in


class LinkWalker(Metered, Protocol):
    """Follows the references of pull requests."""

    async def walk(self, facts: MergedPullRequest) -> tuple[LinkWalk, Cost]:
        """Return what *facts* refer to, and the cost of the requests."""
        ...


@dataclass(frozen=True)
class DiscussionTools:
    """Access to the discussions of pull requests."""

    links: LinkWalker | None
    """None if GitHub is not asked: offline, or without a token."""


async def run(stage: StageRun, tools: DiscussionTools) -> StageSummary:
    """Read the pending discussions of the month; raises as `run_items`.

    A stored walk is kept unless the run is forced. A pull request that was entered without GitHub is read once GitHub
    can be asked.
    """
    with stage.database.transaction() as connection:
        prs = done_in(connection, stage.month, Stage.CLASSIFICATIONS)
        stored = DISCUSSIONS.read_keys(connection, stage.month, [pr.key for pr in prs])

    async def read(item: WorkItem[PullRequest]) -> Outcome[Discussion]:
        facts, known, cost = item.value.facts, stored.get(item.value.key), Cost()
        walk = known.walk if known is not None and not stage.options.force else None
        if walk is None and tools.links is not None and not is_stand_in(facts.number):
            walk, cost = await tools.links.walk(facts)
        row = Discussion(month=stage.month, repository_id=facts.repository_id, number=facts.number, walk=walk)
        return Outcome(row, cost, _detail(walk))

    unread = {
        pr.item
        for pr in prs
        if tools.links is not None
        and not is_stand_in(pr.facts.number)
        and pr.key in stored
        and stored[pr.key].walk is None
    }
    items = [WorkItem(pr.item, _inputs(pr), pr) for pr in prs]
    async with AsyncExitStack() as stack:
        if tools.links is not None:
            await stack.enter_async_context(metered(stage, tools.links))
        return await run_items(stage, ItemKind.PULL_REQUEST, items, read, DISCUSSIONS.save, redo=unread)


def _inputs(pr: PullRequest) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "created_at", "linked_issues"})
    return fingerprint(Stage.DISCUSSIONS, facts)


def _detail(walk: LinkWalk | None) -> str:
    if walk is None:
        return "GitHub was not asked"
    unread = f", {len(walk.unreadable)} unreadable" if walk.unreadable else ""
    return f"{len(walk.links)} issues and pull requests, {len(walk.later)} later comments{unread}"
