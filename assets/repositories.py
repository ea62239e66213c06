"""`repositories`: the tracked repositories as of the month, by GitHub id, renames followed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from formulacode_dagster.github.discovery import Discovery, discover_repositories
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.items import RejectionReason, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.store.artifacts import REPOSITORIES
from resources.github import GitHubResource
from resources.postgres import PostgresResource

from .materialize import ItemConfig, keep_nothing, report, require_done, stage_asset, stage_run

DISCOVERY = "discovery"
_REJECTED = {
    RepositoryState.FORK: RejectionReason.FORK,
    RepositoryState.ARCHIVED: RejectionReason.ARCHIVED,
    RepositoryState.EMPTY: RejectionReason.EMPTY,
    RepositoryState.PRIVATE: RejectionReason.PRIVATE,
}


@stage_asset(
    Stage.REPOSITORIES,
    group="intake",
    kinds={"github", "postgres"},
    description="One row is a repository that keeps an asv suite, as of the month. Forks and archived ones are marked.",
    columns={
        "id": ("bigint", "GitHub's id, which survives renames"),
        "full_name": ("text", "owner/name now"),
        "aliases": ("jsonb", "names under which it was also found"),
        "state": ("text", "active, archived, fork, empty or vanished"),
        "config_path": ("text", "path of the asv configuration"),
        "stars": ("integer", "stars as of intake"),
    },
    pool="github",
)
def repositories(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource, github: GitHubResource
) -> dg.MaterializeResult[Any]:
    """Find repositories by code search, then decide which of them are tracked."""
    with stage_run(context, postgres, Stage.REPOSITORIES, config) as run:
        month = Month.parse(run.month)

        async def discover(_: WorkItem[None]) -> Outcome[Discovery]:
            async with github.client(Stage.REPOSITORIES) as client:
                found = await discover_repositories(client, month, minimum_stars=github.stars)
                return Outcome(found, client.cost, f"{len(found.repositories)} repositories found")

        def keep(connection: Connection, found: Sequence[Discovery]) -> None:
            for discovery in found:
                REPOSITORIES.replace_month(connection, run.month, discovery.repositories)

        whole = WorkItem(DISCOVERY, fingerprint(Stage.REPOSITORIES, github.stars), None, always=True)
        discovered = asyncio.run(run_items(run, [whole], discover, keep, prune=False))
        require_done(discovered)
        with run.database.transaction() as connection:
            rows = REPOSITORIES.read(connection, run.month)
        items = [WorkItem(row.full_name, fingerprint(Stage.REPOSITORIES, row.model_dump()), row) for row in rows]
        decided = asyncio.run(run_items(run, items, in_thread(_decide), keep_nothing, besides=[DISCOVERY]))
    return report(context, discovered, decided, rows=len(rows))


def _decide(item: WorkItem[Repository]) -> Outcome[None]:
    repository = item.value
    if repository.state is RepositoryState.VANISHED:
        raise ItemFailure("vanished", f"{repository.full_name} is not on GitHub any more")
    if repository.state in _REJECTED:
        raise Rejection(_REJECTED[repository.state], f"{repository.full_name} is {repository.state}")
    return Outcome(detail=f"asv configuration at {repository.config_path}")
