"""What a suite imports that is not installed: helpers, tools and scripts of the repository, what its tests need."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+(\w[\w., \t]*))", re.MULTILINE)


def reach_uninstalled(root: str, folders: list[str]) -> list[str]:
    """Put those of *folders* last on the import path that alone have what the suite in *root* imports; the names of it.

    asv offers a suite its own folder and what is installed. Last, a folder can stand in for neither.
    """
    imported = _imported(root)
    reached: list[str] = []
    for folder in folders:
        if Path(root).resolve() == Path(folder).resolve():
            continue
        names = sorted(name for name in imported if _is_in(folder, name) and not _is_importable(name))
        if names:
            sys.path.append(folder)
            importlib.invalidate_caches()
        reached += names
    return reached


def _imported(root: str) -> set[str]:
    """First parts of all names that the suite's statements import, wherever they stand."""
    names: set[str] = set()
    for path in Path(root).rglob("*.py"):
        if path.is_file():
            for package, listed in _IMPORT.findall(path.read_bytes()):
                parts = [package] if package else listed.split(b",")
                names.update(part.strip().split(b" ")[0].split(b".")[0].decode() for part in parts)
    return names - {""}


def _is_in(folder: str, name: str) -> bool:
    return Path(folder, name).is_dir() or Path(folder, f"{name}.py").is_file()


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        # something that is loaded without a trace of where from
        return True
