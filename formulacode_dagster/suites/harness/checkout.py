"""What a suite imports that only the repository's root has: helpers of its tests, tools, scripts."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+(\w[\w., \t]*))", re.MULTILINE)


def reach_checkout(root: str, checkout: str) -> list[str]:
    """Put *checkout* last on the import path if the suite in *root* imports what only that has; the names of it.

    asv offers a suite its own folder and what is installed. Last, the checkout can stand in for neither.
    """
    if Path(root).resolve() == Path(checkout).resolve():
        return []
    names = sorted(name for name in _imported(root) if _is_in(checkout, name) and not _is_importable(name))
    if names:
        sys.path.append(checkout)
    return names


def _imported(root: str) -> set[str]:
    """First parts of all names that the suite's statements import, wherever they stand."""
    names: set[str] = set()
    for path in Path(root).rglob("*.py"):
        if path.is_file():
            for package, listed in _IMPORT.findall(path.read_bytes()):
                parts = [package] if package else listed.split(b",")
                names.update(part.strip().split(b" ")[0].split(b".")[0].decode() for part in parts)
    return names - {""}


def _is_in(checkout: str, name: str) -> bool:
    return Path(checkout, name).is_dir() or Path(checkout, f"{name}.py").is_file()


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        # something that is loaded without a trace of where from
        return True
