"""Imports of a suite's Python files, and the projects of the package index they may be."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from packaging.utils import canonicalize_name

from .python_source import parse_python
from .shipped_tables import shipped_table
from .tree import Tree

_IMPORTING_CALLS = frozenset({"__import__", "import_module", "import_or_skip", "importorskip"})
_LARGEST = 1_000_000
"""Largest file in bytes to parse: larger files hold data."""


@cache
def _other_names() -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(projects) for name, projects in shipped_table("import_names").items()}


def projects_of(import_name: str) -> tuple[str, ...]:
    """Normalised names of the projects that may carry the top-level module *import_name*, the likeliest first."""
    return tuple(dict.fromkeys((*_other_names().get(import_name, ()), canonicalize_name(import_name))))


def imports_below(tree: Tree, folder: str) -> dict[str, str]:
    """Return modules that the Python files below *folder* import, in full, and the place of each first import.

    Imports in functions and under conditions count too; relative imports and the standard library do not. A file that
    cannot be parsed imports nothing.
    """
    imports: dict[str, str] = {}
    for path in tree.below(folder):
        text = tree.text(path) if path.endswith(".py") else None
        if text is None or len(text) > _LARGEST:
            continue
        for name, line in _imports_of(text):
            if name.partition(".")[0] not in sys.stdlib_module_names:
                imports.setdefault(name, f"{path}:{line}")
    return imports


def _imports_of(text: str) -> Iterator[tuple[str, int]]:
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from ((alias.name, node.lineno) for alias in aliases)
            case ast.ImportFrom(module=str() as module, level=0):
                yield module, node.lineno
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str() as module), *_]
            ):
                if name in _IMPORTING_CALLS and all(part.isidentifier() for part in module.split(".")):
                    yield module, node.lineno
