"""Reading files of the session's checkout, laying others over it, and putting back what was there."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Emit

KEPT = ".fc_laid"
"""Folder of the checkout that has what was there before a suite was laid: a copy of the session has it, too."""
_FOLDER, _FILES = "folder", "files.json"


def read(request: dict[str, Any], emit: Emit) -> None:
    """Send the content of files; a missing one is left out."""
    for path in request["paths"]:
        file = Path(request["repository"], path)
        if file.is_file():
            emit(event="file", path=path, content=base64.b64encode(file.read_bytes()).decode())


def write(request: dict[str, Any], emit: Emit) -> None:
    """Lay files over the checkout, in place of what `folder` held, and of all that was laid before."""
    restore(request, emit)
    repository = Path(request["repository"])
    folder, kept = repository / request["folder"], repository / KEPT
    beside = [path for path in request["files"] if folder not in (repository / path).parents]
    before = {path: _encoded(repository / path) for path in beside}
    kept.mkdir()
    (kept / _FILES).write_text(json.dumps({"folder": request["folder"], "files": before}), "utf-8")
    if folder.is_dir():
        _move(folder, kept / _FOLDER)
    for path, content in request["files"].items():
        _lay(repository / path, content)


def restore(request: dict[str, Any], _emit: Emit) -> None:
    """Bring the checkout to what it was before anything was laid."""
    repository = Path(request["repository"])
    kept = repository / KEPT
    if not kept.is_dir():
        return
    told = json.loads((kept / _FILES).read_text("utf-8"))
    folder = repository / told["folder"]
    if folder.is_dir():
        shutil.rmtree(str(folder))
    if os.path.lexists(str(kept / _FOLDER)):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _move(kept / _FOLDER, folder)
    for path, content in told["files"].items():
        if content is None:
            _remove(repository / path)
        else:
            _lay(repository / path, content)
    shutil.rmtree(str(kept))


def _move(source: Path, target: Path) -> None:
    # no mere renaming: a container's file system need not have it for what its image holds
    shutil.move(str(source), str(target))


def _encoded(file: Path) -> str | None:
    return base64.b64encode(file.read_bytes()).decode() if file.is_file() else None


def _lay(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(content))


def _remove(file: Path) -> None:
    """Remove *file* and the folders that only it was in: an empty one could be imported."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    for folder in file.parents:
        try:
            folder.rmdir()
        except OSError:
            return
