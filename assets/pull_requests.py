"""`pull_requests`: every pull request merged in the window, and its true base commit and patch."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from formulacode_dagster.git.landing import wanted_commits
from formulacode_dagster.github.merged import MergedWindow, merged_pull_requests
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, StageSummary, WorkItem
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change, MergedPullRequest
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.store.artifacts import MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.store.ledger import items_in_state
from formulacode_dagster.store.pull_requests import save_changes
from formulacode_dagster.store.windows import replace_window
from resources.github import GitHubResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .materialize import ItemConfig, report, stage_asset, stage_run

MIRROR_THREADS = 2


@stage_asset(
    Stage.PULL_REQUESTS,
    group="intake",
    kinds={"github", "git", "postgres"},
    description="One row is a pull request merged in the month, with the base for which base + patch = merge tree.",
    columns={
        "repository_id": ("bigint", "GitHub's id of the repository"),
        "number": ("integer", "number of the pull request"),
        "title": ("text", "title as of intake"),
        "merged_at": ("timestamptz", "instant of the merge, within the month"),
        "merge_commit_sha": ("text", "commit that landed"),
        "base_sha": ("text", "commit the patch applies to, verified"),
        "merge_kind": ("text", "merge, squash or rebase"),
        "patch_sha256": ("text", "key of the compressed patch"),
    },
    pool="github",
)
def pull_requests(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    github: GitHubResource,
    mirrors: MirrorsResource,
) -> dg.MaterializeResult[Any]:
    """Ask GitHub for each repository's window, then read base and patch from the mirror."""
    with stage_run(context, postgres, Stage.PULL_REQUESTS, config) as run:
        month = Month.parse(run.month)
        cache = mirrors.cache()
        with run.database.transaction() as connection:
            tracked = set(items_in_state(connection, run.month, Stage.REPOSITORIES, ItemState.DONE))
            rows = [row for row in REPOSITORIES.read(connection, run.month) if row.full_name in tracked]

        async def intake(items: Sequence[WorkItem[Repository]]) -> StageSummary:
            async with github.client(Stage.PULL_REQUESTS) as client:

                async def window(item: WorkItem[Repository]) -> Outcome[MergedWindow]:
                    with client.account() as account:
                        taken = await merged_pull_requests(client, item.value, month)
                    return Outcome(taken, account.cost, f"{taken.count.stored} merged pull requests")

                return await run_items(run, items, window, _keep_windows, prune=False)

        windows = [WorkItem(row.full_name, fingerprint(Stage.PULL_REQUESTS, row.id, run.month), row) for row in rows]
        taken_in = asyncio.run(intake(windows))
        with run.database.transaction() as connection:
            merged = MERGED_PULL_REQUESTS.read(connection, run.month)
        by_repository: dict[str, list[MergedPullRequest]] = defaultdict(list)
        for facts in merged:
            by_repository[facts.repository].append(facts)
        commits = {repository: wanted_commits(group) for repository, group in by_repository.items()}

        def change(item: WorkItem[MergedPullRequest]) -> Outcome[tuple[Change, bytes]]:
            facts = item.value
            mirror = cache.ensure(facts.repository, commits=commits[facts.repository])
            found, patch = mirror.change(facts)
            return Outcome((found, patch), detail=f"{found.merge_kind}, {len(found.files)} files, {len(patch)} bytes")

        items = [
            WorkItem(one.item, fingerprint(Stage.PULL_REQUESTS, one.model_dump(mode="json")), one) for one in merged
        ]
        changed = asyncio.run(
            run_items(
                run,
                items,
                in_thread(change),
                save_changes,
                concurrency=min(config.max_concurrency, MIRROR_THREADS),
                besides=[row.full_name for row in rows],
            )
        )
    return report(context, taken_in, changed, rows=len(merged), repositories=len(rows))


def _keep_windows(connection: Connection, windows: Sequence[MergedWindow]) -> None:
    for window in windows:
        replace_window(connection, window.count, window.pull_requests)
