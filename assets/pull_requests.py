"""`pull_requests`: every pull request merged in the window, and its true base commit and patch."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from formulacode_dagster.git.changes import change_of
from formulacode_dagster.git.shared_mirrors import SharedMirrors
from formulacode_dagster.github import checks as verdicts
from formulacode_dagster.intake.pull_requests import Windows, tracked_repositories, window_item
from formulacode_dagster.intake.tracked import found_again
from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, StageSummary, WorkItem
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.store.artifacts import INTAKE_COUNTS
from formulacode_dagster.store.ledger import entries_of
from formulacode_dagster.store.pull_requests import MergedName, items_by_key, iterate_done, merged_one, save_changes
from formulacode_dagster.store.windows import checksum_of_month
from resources.intake import IntakeResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, month_check
from .materialize import ItemConfig, booked, report, stage_asset, stage_run, usage_metadata
from .partitions import MONTHS
from .repositories import repositories as repositories_asset

MIRROR_THREADS = 2


@month_check(blocking=True)
def counts_match(month: JudgedMonth) -> Judgement:
    """As many merged pull requests are stored as GitHub reports, repository by repository."""
    counts = month.rows(INTAKE_COUNTS)
    with month.database.transaction() as connection:
        tracked = tracked_repositories(connection, month.key)
        stored = Counter(repository for repository, _ in items_by_key(connection, month.key))
        entries = entries_of(connection, month.key, Stage.PULL_REQUESTS)
    windows = [entry for entry in entries if "#" not in entry.item]
    return verdicts.counts_match(month.key, tracked, counts, stored, windows)


@month_check(blocking=True)
def window_and_shas_valid(month: JudgedMonth) -> Judgement:
    """Every merge lies in the month, every SHA is one, nothing is stored twice."""
    with month.database.transaction() as connection:
        return verdicts.window_and_shas_valid(month.key, iterate_done(connection, month.key, Stage.PULL_REQUESTS))


@stage_asset(
    Stage.PULL_REQUESTS,
    deps=[repositories_asset],
    partitions_def=MONTHS,
    group_name="intake",
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
    checks=[counts_match, window_and_shas_valid],
)
def pull_requests(
    context: dg.AssetExecutionContext,
    config: ItemConfig,
    postgres: PostgresResource,
    intake: IntakeResource,
    mirrors: MirrorsResource,
) -> dg.MaterializeResult[Any]:
    """Ask for the windows of all repositories at once, then read each base and patch from the mirror."""
    with stage_run(context, postgres, pull_requests, config) as run:
        month = Month.parse(run.month)
        cache = mirrors.cache()
        with run.database.transaction() as connection:
            repositories = tracked_repositories(connection, run.month)
            again = found_again(connection, run.month)
        windows = Windows(month, repositories)

        async def take_in(items: Sequence[WorkItem[Repository]]) -> StageSummary:
            async with booked(run, intake.source(Stage.PULL_REQUESTS, run.month, run.run_id)) as source:

                async def window(item: WorkItem[Repository]) -> Outcome[MergedWindow]:
                    taken = await source.window(item.value, month)
                    return Outcome(taken, taken.cost, f"{taken.count.stored} merged pull requests")

                # windows that are asked for at the same time share requests
                together = len(items) or None
                return await run_items(run, items, window, windows.save, prune=False, concurrency=together, redo=again)

        now, state = datetime.now(tz=UTC), intake.state()
        taken_in = asyncio.run(take_in([window_item(one, month, now, state) for one in repositories]))
        with run.database.transaction() as connection:
            windows.rename_items(connection)
            names = [one.full_name for one in tracked_repositories(connection, run.month)]
            merged = windows.merged(connection, taken_in)
            checksum = checksum_of_month(connection, run.month)
        by_repository: dict[str, list[MergedName]] = defaultdict(list)
        for one in merged:
            by_repository[one.repository].append(one)

        def change(item: WorkItem[MergedName]) -> Outcome[tuple[Change, bytes]]:
            with run.database.transaction() as connection:
                facts = merged_one(connection, run.month, item.value.key)
            with shared.mirror(facts.repository) as mirror:
                found, patch = change_of(mirror, facts)
            return Outcome((found, patch), detail=f"{found.merge_kind}, {len(found.files)} files, {len(patch)} bytes")

        items = [WorkItem(one.item, fingerprint(Stage.PULL_REQUESTS, one.digest), one) for one in merged]
        with SharedMirrors(cache, by_repository) as shared:
            changed = asyncio.run(
                run_items(
                    run,
                    items,
                    in_thread(change),
                    save_changes,
                    concurrency=min(config.max_concurrency, MIRROR_THREADS),
                    besides=names,
                    redo=again,
                )
            )
    facts: dict[str, Any] = {"repositories": len(repositories), **windows.changes, "checksum": checksum}
    if cache.evicted:
        facts["mirrors_evicted"] = ", ".join(map(str, cache.evicted))
    return report(context, taken_in, changed, rows=len(merged), **facts, **usage_metadata(run))
