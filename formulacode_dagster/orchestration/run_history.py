"""Prunes old runs of Dagster.

`delete_run` also deletes a run's materializations and check evaluations, and the UI would show partitions of finished
months as missing. So a run is kept, at any age, while the UI shows it for any asset, partition or check: the last that
materialized it, tried to or evaluated it. So is the first run of such a retry. Ticks of schedules and sensors have
Dagster's own `retention`, in `dagster.yaml`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

import dagster as dg

_T = TypeVar("_T")
AT_ONCE = 200
"""Runs, or event records, per request."""
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_REPEATS = "dagster/root_run_id"
_FILES = ("", "-wal", "-shm")


@dataclass(frozen=True)
class PrunedRuns:
    """Deleted runs; for a dry run, those that would be."""

    where: ClassVar[str] = "Dagster"

    dry_run: bool
    days: int
    runs: int = 0
    shown: int = 0
    """As old, and kept since the UI shows them as the latest of something."""
    bytes: int = 0
    """Bytes of files; for Postgres the size of rows is unknown."""

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes of each removal."""
        if self.runs:
            why = f"older than {self.days} days, and the last of no asset, partition or check"
            yield f"{self.runs} runs with their events", why, self.bytes

    @property
    def summary(self) -> str:
        """One line for a person."""
        if not self.days:
            return f"{self.where}: runs are kept for ever (FC_RUNS_DAYS)"
        verb = "to remove" if self.dry_run else "removed"
        return f"{self.where}: {verb}: runs {self.runs}; kept for what they show: runs {self.shown} as old"


def prune_runs(instance: dg.DagsterInstance, days: int, *, now: datetime, dry_run: bool) -> PrunedRuns:
    """Delete runs that ended more than *days* ago (0: none) and show nothing; interrupted, it leaves the rest."""
    if not days:
        return PrunedRuns(dry_run, days)
    old = _ended_before(instance, now - timedelta(days=days))
    shown = _shown(instance, old) if old else set()
    going = [run_id for run_id in old if run_id not in shown]
    size = sum(file.stat().st_size for run_id in going for file in _files(instance, run_id))
    if not dry_run:
        for run_id in going:
            _delete(instance, run_id)
    return PrunedRuns(dry_run, days, len(going), len(old) - len(going), size)


def _ended_before(instance: dg.DagsterInstance, before: datetime) -> list[str]:
    filters = dg.RunsFilter(statuses=_ENDED, created_before=before)
    found: list[str] = []
    cursor = None
    while records := instance.get_run_records(filters, limit=AT_ONCE, cursor=cursor):
        cursor = records[-1].dagster_run.run_id
        found += [
            record.dagster_run.run_id
            for record in records
            if record.end_time is None or record.end_time < before.timestamp()
        ]
    return found


def _shown(instance: dg.DagsterInstance, old: Sequence[str]) -> set[str]:
    """Return runs, of any age, that the UI shows as the latest of something, or whose retry is kept."""
    storage = instance.event_log_storage
    shown: set[str] = set()
    for asset in instance.get_asset_keys():
        shown |= _shown_of_asset(instance, asset)
    judged = {check for run_id in old if run_id not in shown for check in _checks_of(instance, run_id)}
    shown |= {info.latest_planned_run_id for info in storage.get_asset_check_partition_info(sorted(judged, key=str))}
    return shown | _repeated(instance, set(old) - shown)


def _repeated(instance: dg.DagsterInstance, going: Set[str]) -> set[str]:
    """Return those of *going* with a kept retry: the UI has no page for a retry without its first run."""
    return {
        run.tags[_REPEATS]
        for batch in _batches(sorted(going))
        for run in instance.get_runs(dg.RunsFilter(tags={_REPEATS: list(batch)}))
        if run.run_id not in going
    }


def _shown_of_asset(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[str]:
    storage = instance.event_log_storage
    shown = {record.asset_entry.last_run_id for record in instance.get_asset_records([asset])}
    shown |= {record.run_id for record in instance.fetch_materializations(asset, limit=1).records}
    tried = storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
    shown |= {run_id for run_id, _ in tried.values()}
    made = storage.get_latest_storage_id_by_partition(asset, dg.DagsterEventType.ASSET_MATERIALIZATION)
    for batch in _batches(sorted(made.values())):
        these = dg.AssetRecordsFilter(asset_key=asset, storage_ids=list(batch))
        shown |= {record.run_id for record in instance.fetch_materializations(these, limit=len(batch)).records}
    return {run_id for run_id in shown if run_id}


def _checks_of(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.AssetCheckKey]:
    """The checks that the run has judged, or was to judge."""
    kinds = {dg.DagsterEventType.ASSET_CHECK_EVALUATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED}
    for record in instance.get_records_for_run(run_id, of_type=kinds).records:
        event = record.event_log_entry.get_dagster_event()
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            yield event.asset_check_evaluation_data.asset_check_key
        else:
            yield event.asset_check_planned_data.asset_check_key


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    # an instance in our own process captures nothing, and finds nothing that others have captured
    shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)
    # events first: a run without them is deleted the next time, events without a run never would be
    instance.event_log_storage.delete_events(run_id)
    instance.delete_run(run_id)
    for file in _files(instance, run_id):
        file.unlink(missing_ok=True)


def _files(instance: dg.DagsterInstance, run_id: str) -> list[Path]:
    """SQLite files of a run's events, which outlive it; none in other storages."""
    path_of = getattr(instance.event_log_storage, "path_for_shard", None)
    return [] if path_of is None else [file for end in _FILES if (file := Path(f"{path_of(run_id)}{end}")).is_file()]


def _batches(items: Sequence[_T]) -> Iterable[Sequence[_T]]:
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))
