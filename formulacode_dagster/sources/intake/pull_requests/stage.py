"""The stage `pull_requests`: the windows of all tracked repositories together, then base and patch of each merge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from formulacode_dagster.models.intake import IntakeSource, MergedWindow
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import BatchWork, Finish, Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.pull_requests import MergedName, merged_one, save_changes
from formulacode_dagster.operating.store.windows import enter_candidates
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.git.shared_mirrors import SharedMirrors
from formulacode_dagster.sources.intake.repositories.tracked import reappeared

from .windows import Windows, tracked_repositories, window_item

MIRROR_THREADS = 2


@dataclass(frozen=True)
class PullRequestTools:
    """Source of windows, and the mirrors."""

    source: IntakeSource
    mirrors: MirrorCache
    offline: str = ""
    """State of an offline source; empty for GitHub."""


async def run(stage: StageRun, tools: PullRequestTools) -> StageSummary:
    """Take in the pending windows of the month, then base and patch of each merge; raises as `run_items`."""
    month = Month.parse(stage.month)
    with stage.database.transaction() as connection:
        repositories = tracked_repositories(connection, stage.month)
        again = reappeared(connection, stage.month)
    windows = Windows(month, repositories)
    now = datetime.now(tz=UTC)
    items = [window_item(repository, month, now, tools.offline) for repository in repositories]
    work = _take_in_windows(tools.source, month)
    async with metered(stage, tools.source):
        taken_in = await run_items(stage, ItemKind.REPOSITORY, items, work, windows.save, redo=again)
    with stage.database.transaction() as connection:
        windows.rename_items(connection)
        entered = enter_candidates(connection, stage.month, dry_run=stage.options.dry_run)
        merged = windows.merged(connection, taken_in, besides=frozenset(entered))
    changes = await _read_changes(stage, tools.mirrors, merged, again)
    return changes.after(taken_in).with_counts(
        repositories=len(repositories), from_dashboards=len(entered), merged=len(merged), **windows.changes
    )


def _take_in_windows(source: IntakeSource, month: Month) -> BatchWork[Repository, MergedWindow]:
    async def take_in(items: Sequence[WorkItem[Repository]], finish: Finish[Repository, MergedWindow]) -> None:
        by_id = {item.value.id: item for item in items}

        def finish_window(repository: Repository, end: MergedWindow | Exception) -> None:
            if isinstance(end, MergedWindow):
                finish(by_id[repository.id], Outcome(end, end.cost, f"{end.count.stored} merged pull requests"))
            else:
                finish(by_id[repository.id], end)

        await source.take_in(month, [item.value for item in items], finish_window)

    return BatchWork(take_in)


async def _read_changes(
    stage: StageRun, cache: MirrorCache, merged: Sequence[MergedName], redo: Collection[str]
) -> StageSummary:
    """Read base and patch of each of *merged* from the mirrors."""
    by_repository: dict[str, list[MergedName]] = defaultdict(list)
    for name in merged:
        by_repository[name.repository].append(name)

    def read(item: WorkItem[MergedName]) -> Outcome[tuple[Change, bytes]]:
        with stage.database.transaction() as connection:
            facts = merged_one(connection, stage.month, item.value.key)
        with mirrors.mirror(facts.repository) as mirror:
            change, patch = change_of(mirror, facts)
        return Outcome((change, patch), detail=f"{change.merge_kind}, {len(change.files)} files, {len(patch)} bytes")

    items = [WorkItem(name.item, fingerprint(Stage.PULL_REQUESTS, name.digest), name) for name in merged]
    threads = min(stage.options.concurrency, MIRROR_THREADS)
    with SharedMirrors(cache, by_repository) as mirrors:
        return await run_items(
            stage, ItemKind.PULL_REQUEST, items, in_thread(read), save_changes, concurrency=threads, redo=redo
        )
