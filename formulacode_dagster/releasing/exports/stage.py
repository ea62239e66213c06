"""The stage `exports`: write the tasks of a release as folders that harnesses run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulacode_dagster.models.errors import NotAsked
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import in_thread, keep_nothing, run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth

from .month import export_formats, exported_folders, is_published


@dataclass(frozen=True)
class ExportTools:
    """A release, and the folder of the month's tasks."""

    released: ReleasedMonth
    folder: Path


async def run(stage: StageRun, tools: ExportTools) -> StageSummary:
    """Write the pending tasks, and those whose folder is missing or changed; raises as `run_items`."""
    rows = {f"{row['repo_name']}#{row['pr_number']}": row for row in tools.released.frame.iter_rows(named=True)}
    stale = {each.task_id for each in exported_folders(rows.values(), tools.folder) if not each.is_current}

    def write(item: WorkItem[dict[str, Any]]) -> Outcome[None]:
        if not is_published(item.value):
            raise NotAsked(SkipReason.NOT_PUBLISHED, "its image is in no registry, so others could not run it")
        return Outcome(detail=", ".join(map(str, export_formats(item.value, tools.folder))))

    items = [WorkItem(name, fingerprint(Stage.EXPORTS, row), row) for name, row in rows.items()]
    redo = [name for name, row in rows.items() if row["task_id"] in stale]
    return await run_items(stage, ItemKind.PULL_REQUEST, items, in_thread(write), keep_nothing, redo=redo)
