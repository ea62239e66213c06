"""The stage `pull_requests`: the windows of all tracked repositories at once, then base and patch of each merge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from formulacode_dagster.models.intake import IntakeSource, MergedWindow
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import BatchWork, Finish, Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.pull_requests import MergedName, merged_one, save_changes
from formulacode_dagster.operating.store.windows import checksum_of_month, enter_candidates
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.git.shared_mirrors import SharedMirrors

from .tracked import reappeared
from .windows import Windows, tracked_repositories, window_item

MIRROR_THREADS = 2


@dataclass(frozen=True)
class PullRequestIntake:
    """What one run of the stage did, and the month that it leaves."""

    repositories: int
    windows: StageSummary
    changes: StageSummary
    merged: int
    """Pull requests that the month's repositories merged."""
    row_changes: dict[str, int]
    """How many rows the windows added, changed and removed."""
    checksum: str
    from_dashboards: int = 0
    """Commits that entered as candidates since benchmarks of a dashboard got faster at them."""


async def take_in_pull_requests(
    run: StageRun, source: IntakeSource, cache: MirrorCache, *, offline: str = ""
) -> PullRequestIntake:
    """Take in what is pending of the month; *offline* is the state of an offline source. Raises as `run_items`."""
    month = Month.parse(run.month)
    with run.database.transaction() as connection:
        repositories = tracked_repositories(connection, run.month)
        again = reappeared(connection, run.month)
    windows = Windows(month, repositories)
    now = datetime.now(tz=UTC)
    items = [window_item(repository, month, now, offline) for repository in repositories]
    async with metered(run, source):
        taken_in = await run_items(run, items, _take_in_windows(source, month), windows.save, prune=False, redo=again)
    with run.database.transaction() as connection:
        windows.rename_items(connection)
        names = [repository.full_name for repository in tracked_repositories(connection, run.month)]
        entered = frozenset(enter_candidates(connection, run.month))
        merged = windows.merged(connection, taken_in, besides=entered)
        checksum = checksum_of_month(connection, run.month)
    changes = await _read_changes(run, cache, merged, besides=names, redo=again)
    return PullRequestIntake(
        len(repositories), taken_in, changes, len(merged), windows.changes, checksum, from_dashboards=len(entered)
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
    run: StageRun, cache: MirrorCache, merged: Sequence[MergedName], *, besides: Sequence[str], redo: Collection[str]
) -> StageSummary:
    """Base and patch of each of *merged*, read from the repositories' mirrors."""
    by_repository: dict[str, list[MergedName]] = defaultdict(list)
    for name in merged:
        by_repository[name.repository].append(name)

    def read(item: WorkItem[MergedName]) -> Outcome[tuple[Change, bytes]]:
        with run.database.transaction() as connection:
            facts = merged_one(connection, run.month, item.value.key)
        with mirrors.mirror(facts.repository) as mirror:
            change, patch = change_of(mirror, facts)
        return Outcome((change, patch), detail=f"{change.merge_kind}, {len(change.files)} files, {len(patch)} bytes")

    items = [WorkItem(name.item, fingerprint(Stage.PULL_REQUESTS, name.digest), name) for name in merged]
    with SharedMirrors(cache, by_repository) as mirrors:
        return await run_items(
            run,
            items,
            in_thread(read),
            save_changes,
            concurrency=min(run.options.max_concurrency, MIRROR_THREADS),
            besides=besides,
            redo=redo,
        )
