"""Writing exported tasks: a folder of templates for each format, and what all of them grade with."""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from formulacode_dagster.files.atomic import disk_errors
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.suites.archive import harness_archive

from .task import ExportedTask

AGENT_SECONDS = 3 * 3600
EXECUTABLE = ".sh"
_TEMPLATE = ".jinja"


class Format(StrEnum):
    """Whose tasks they are to be."""

    HARBOR = "harbor"

    @classmethod
    def named(cls, name: str) -> Format:
        """The format of that *name*; raises ConfigurationError when there is none."""
        if name not in set(cls):
            raise ConfigurationError(f"there is no format {name}", remedy=f"Take one of {', '.join(cls)}")
        return cls(name)


def export_tasks(rows: Iterable[Mapping[str, Any]], format_: Format, folder: Path) -> list[Path]:
    """Write a folder for each of *rows* into *folder*, each in place of one of that name; returns them.

    Raises as `ExportedTask.of` and `export_task`.
    """
    return [export_task(row, format_, folder / str(row["task_id"])) for row in rows]


def export_task(row: Mapping[str, Any], format_: Format, folder: Path) -> Path:
    """Write the task of *row* into *folder*, which may hold an exported task and nothing else.

    Raises as `ExportedTask.of`, ConfigurationError for a folder with something else, OutsideSystemError where
    the disk is full.
    """
    contents = task_files(ExportedTask.of(row), format_)
    with disk_errors(f"the task in {folder}"):
        if folder.exists():
            if not (folder / "tests" / "task.json").is_file() and any(folder.iterdir()):
                raise ConfigurationError(
                    f"{folder} holds something else than an exported task",
                    remedy="Name another folder, or an empty one",
                )
            shutil.rmtree(folder)
        for path, content in contents.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if target.suffix == EXECUTABLE:
                target.chmod(0o755)
    return folder


def task_files(task: ExportedTask, format_: Format) -> dict[str, bytes]:
    """All files of *task* in a format, by path."""
    graded = {
        "tests/task.json": json.dumps(task.for_grader(), indent=1, sort_keys=True).encode(),
        "tests/oracle.patch": task.patch,
        "tests/grader.pyz": grader_archive(),
        "tests/harness.pyz": harness_archive(),
        "solution/oracle.patch": task.patch,
    }
    return {**_rendered(task, files(__package__).joinpath("formats", format_.value)), **graded}


def _rendered(task: ExportedTask, templates: Traversable) -> dict[str, bytes]:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - no markup
    environment.filters["json"] = json.dumps
    row, limits = task.row, task.procedure.limits
    values = {
        "row": row,
        "image": task.image,
        "statement": row["final_md"],
        "patch": task.patch,
        "cpus": math.ceil(limits.cpus),
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "agent_seconds": AGENT_SECONDS,
        "grading_seconds": task.grading_seconds,
    }
    return {
        path.removesuffix(_TEMPLATE): environment.from_string(text).render(values).encode()
        if path.endswith(_TEMPLATE)
        else text.encode()
        for path, text in _texts(templates, "")
    }


def _texts(folder: Traversable, above: str) -> Iterable[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _texts(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_text(encoding="utf-8")


def grader_archive() -> bytes:
    """The grader as an archive that an interpreter runs; equal sources give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(_entry("__main__.py"), "from fc_grader.grading import main\n\nmain()\n")
        for file in sorted(files(__package__).joinpath("grader").iterdir(), key=lambda item: item.name):
            if file.name.endswith(".py"):
                archive.writestr(_entry(f"fc_grader/{file.name}"), file.read_bytes())
    return buffer.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
