"""Reads files of the session's checkout, overlays others, and restores the originals."""

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
"""Folder of the checkout with the originals from before an overlay: a copy of the session has it, too."""
_FOLDER, _FILES = "folder", "files.json"


def read(request: dict[str, Any], emit: Emit) -> None:
    """Send the content of files; a missing one is left out."""
    for path in request["paths"]:
        file = Path(request["repository"], path)
        if file.is_file():
            emit(event="file", path=path, content=base64.b64encode(file.read_bytes()).decode())


def write(request: dict[str, Any], emit: Emit) -> None:
    """Copy files into the checkout, in place of *folder*'s content and of all earlier overlays."""
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
    """Restore the checkout to its state before any overlay."""
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
    # no mere rename: a container's file system may not support it for files of its image
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
