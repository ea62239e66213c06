"""Imports of a suite that are not installed: the repository's helpers, tools and scripts, its tests' requirements."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+(\w[\w., \t]*))", re.MULTILINE)


def reach_uninstalled(root: str, folders: list[str]) -> list[str]:
    """Append to the import path those of *folders* that are the only source of an import of the suite in *root*; return
    the names.

    asv offers a suite its own folder and the installed packages. At the end, a folder cannot shadow either.
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
    """Return the first parts of all names that the suite's statements import, at any place."""
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
        # a module without a record of its origin
        return True
