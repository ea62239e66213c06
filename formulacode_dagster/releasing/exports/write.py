"""Writes exported tasks: files of the grader common to all formats, and the templates of each."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from formulacode_dagster.building.suites.archive import harness_archive, zipapp_of
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.grading import CANARY
from formulacode_dagster.operating.files.atomic import PARTIAL, disk_errors

from .formats import AGENT_DIFF, HarnessFormat, collect_script, is_exported_task
from .task import ExportedTask

AGENT_SECONDS = 3 * 3600
COLLECT_SECONDS = 600
EXECUTABLE = ".sh"


def export_tasks(rows: Iterable[Mapping[str, Any]], format_: HarnessFormat, folder: Path) -> list[Path]:
    """Write a folder for each of *rows* into *folder*, each in place of one of that name; returns them.

    Raises as `ExportedTask.of` and `export_task`.
    """
    return [export_task(row, format_, folder / format_.folder_name(str(row["task_id"]))) for row in rows]


def export_task(row: Mapping[str, Any], format_: HarnessFormat, folder: Path) -> Path:
    """Write the task of *row* into *folder*, which may hold an exported task and nothing else.

    The folder appears complete: until then an exported task stays, and the new one is in a folder next to it.

    Raises as `ExportedTask.of`, ConfigurationError for a folder with other content, OutsideSystemError when the disk is
    full.
    """
    contents = task_files(ExportedTask.of(row), format_)
    with disk_errors(f"the task in {folder}"):
        if folder.exists() and not is_exported_task(folder) and any(folder.iterdir()):
            raise ConfigurationError(
                f"{folder} contains something other than an exported task",
                remedy="Name another folder, or an empty one",
            )
        _replace(folder.resolve(), contents)
    return folder


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write *contents* in place of *folder*, and remove the rest of an earlier call that was killed."""
    new, old = (folder.with_name(f"{PARTIAL}{which}-{folder.name}") for which in ("new", "old"))
    for left_over in (new, old):
        if left_over.exists():
            shutil.rmtree(left_over)
    try:
        for path, content in contents.items():
            target = new / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if target.suffix == EXECUTABLE:
                target.chmod(0o755)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def task_files(task: ExportedTask, format_: HarnessFormat) -> dict[str, bytes]:
    """All files of *task* in a format, by path."""
    return {
        **_rendered(task, format_),
        "tests/task.json": json.dumps(task.for_grader(), indent=1, sort_keys=True).encode(),
        "tests/oracle.patch": task.patch,
        "tests/grader.pyz": grader_archive(),
        "tests/harness.pyz": harness_archive(),
    }


def _rendered(task: ExportedTask, format_: HarnessFormat) -> dict[str, bytes]:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(__package__, "formats")
    environment = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - no markup
    environment.filters.update(json=json.dumps, yaml=_yaml, base64=_base64)
    limits = task.procedure.limits
    values: dict[str, Any] = {
        "format": format_,
        "in_terminal": format_.in_terminal,
        "row": task.row,
        "provenance": task.procedure.provenance,
        "image": task.image,
        "statement": task.row["final_md"],
        "patch": task.patch,
        "cpus": math.ceil(limits.cpus),
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "agent_seconds": AGENT_SECONDS,
        "canary": CANARY,
        "diff": AGENT_DIFF,
        "collect": collect_script(),
        "collect_seconds": COLLECT_SECONDS,
        "grading_seconds": task.grading_seconds,
    }
    values["instruction"] = environment.get_template("instruction.md.jinja").render(values)
    return {
        path: environment.get_template(template).render(values).encode() for path, template in format_.templates.items()
    }


def _yaml(text: str) -> str:
    """*text* in quotes, on one line, as every reader of YAML takes it."""
    import yaml

    quoted: str = yaml.safe_dump(text, default_style='"', width=math.inf)
    return quoted.strip()


def _base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().strip()


def grader_archive() -> bytes:
    """The grader as an archive that an interpreter runs; equal sources give equal bytes."""
    start = b"from fc_grader.grading import main\n\nmain()\n"
    folder = files(__package__).joinpath("grader")
    modules = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".py"))
    return zipapp_of({"__main__.py": start, **{f"fc_grader/{name}": content for name, content in modules}})


def grader_sha256() -> str:
    """Return the hash of the grader that tasks are exported with, its harness included; its reports name it."""
    return hashlib.sha256(grader_archive() + harness_archive()).hexdigest()
