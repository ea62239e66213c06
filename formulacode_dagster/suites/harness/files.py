"""Reading and laying files in the session's checkout."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Emit


def read(request: dict[str, Any], emit: Emit) -> None:
    """Send the content of files; a missing one is left out."""
    for path in request["paths"]:
        file = Path(request["repository"], path)
        if file.is_file():
            emit(event="file", path=path, content=base64.b64encode(file.read_bytes()).decode())


def write(request: dict[str, Any], _emit: Emit) -> None:
    """Lay files over the checkout, in place of what `folder` held."""
    folder = Path(request["repository"], request["folder"])
    if folder.is_dir():
        shutil.rmtree(folder)
    for path, content in request["files"].items():
        file = Path(request["repository"], path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))
