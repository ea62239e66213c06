"""The tasks of a month as folders, one in every format, and whether they still match the release's rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.operating.files.atomic import PARTIAL, disk_errors, write_atomically

from .formats import HarnessFormat, is_exported_task
from .task import ExportedTask
from .write import export_tasks, task_files

LIST_FILE = "tasks.json"
Rows = Iterable[Mapping[str, Any]]


class Standing(StrEnum):
    """State of a folder with respect to the release."""

    CURRENT = "current"
    MISSING = "missing"
    CHANGED = "changed"
    """It does not match the row: of an older release, or edited."""
    LEFT_OVER = "left_over"
    """The release has no such task, or none that can be exported."""


class ExportedFolder(Frozen):
    """A released task in the format of one harness."""

    task_id: str = Field(description="`task_id` of the task's row")
    format: HarnessFormat = Field(description="whose task it is: the name of a harness")
    folder: str = Field(description="its path below the folder of the month")
    image: str = Field(description="its image, by digest; empty if the release lacks it")
    standing: Standing = Field(description="`current`, `missing`, `changed` or `left_over`, compared with the release")

    @property
    def is_current(self) -> bool:
        """Whether it matches its row."""
        return self.standing is Standing.CURRENT


def export_formats(row: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the task of *row* for every harness into the month's *folder*; raises as `export_task`."""
    return [place for format_ in HarnessFormat for place in export_tasks([row], format_, folder / format_)]


def is_published(row: Mapping[str, Any]) -> bool:
    """Return True if others can run the task of *row*: its image is in a registry."""
    return bool(row["image_name"] and row["image_digest"])


def exported_folders(rows: Rows, folder: Path) -> Iterator[ExportedFolder]:
    """Return which of the released *rows* exist in the month's *folder*, and its other entries.

    Rows that cannot be exported, for example without a published image, are not listed: the stage reports the reasons.
    """
    tasks: dict[str, ExportedTask] = {}
    for row in rows:
        with suppress(ItemFailure):
            tasks[str(row["task_id"])] = ExportedTask.of(row)
    for format_ in HarnessFormat:
        places = {task_id: folder / format_ / format_.folder_name(task_id) for task_id in tasks}
        for task_id, task in tasks.items():
            place = places[task_id]
            yield _described(task_id, place, folder, task.image, _standing(place, task_files(task, format_)))
        for place in sorted({*(folder / format_).glob("*")} - {*places.values()}):
            yield _described(place.name, place, folder, "", Standing.LEFT_OVER)


def _described(task_id: str, place: Path, month: Path, image: str, standing: Standing) -> ExportedFolder:
    return ExportedFolder(
        task_id=task_id,
        format=HarnessFormat(place.parent.name),
        folder=place.relative_to(month).as_posix(),
        image=image,
        standing=standing,
    )


def _standing(place: Path, wanted: Mapping[str, bytes]) -> Standing:
    if not place.is_dir():
        return Standing.MISSING
    with disk_errors(str(place)):
        there = {file.relative_to(place).as_posix(): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    return Standing.CURRENT if there == wanted else Standing.CHANGED


def settle(rows: Rows, folder: Path) -> tuple[ExportedFolder, ...]:
    """Remove leftover and unfinished tasks in the month's *folder*, and list the rest in `tasks.json`; return it.

    Leftovers that we did not write stay, and are listed.
    """
    standing = []
    with disk_errors(f"the tasks in {folder}"):
        for each in exported_folders(rows, folder):
            place = folder / each.folder
            is_ours = is_exported_task(place) or place.name.startswith(PARTIAL)
            if each.standing is Standing.LEFT_OVER and is_ours:
                shutil.rmtree(place)
            else:
                standing.append(each)
    listed = [each.model_dump(mode="json") for each in standing]
    write_atomically(folder / LIST_FILE, json.dumps(listed, indent=1).encode() + b"\n")
    return tuple(standing)


def folders_hold_the_release(month: str, folders: Iterable[ExportedFolder]) -> CheckFinding:
    """Pass when each of the *folders* of *month* is current, and none is missing or left over."""
    every = list(folders)
    others = [each for each in every if not each.is_current]
    wrong = [f"{each.folder}: {each.standing.replace('_', ' ')}" for each in others]
    if not every:
        summary = f"{month} has no task that could be exported"
    elif wrong:
        summary = f"{len(wrong)} of {len(every)} folders differ from the release; first: {wrong[0]}"
    else:
        summary = f"all {len(every)} folders match the release's rows"
    return CheckFinding.by_offenders(summary, wrong, {"folders": len(every), "offenders": len(wrong)})
