"""Finds the files of the repository's tests, and those that mention a change."""

from __future__ import annotations

import os
import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TEST_FILE = re.compile(r"^(test_.*|.*_tests?|tests)\.py$")
_CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_PYTHON_FILES = re.compile(r"^python_files\s*=(.*\n?(?:[ \t]+.*\n?)*)", re.MULTILINE)
_PATTERN = re.compile(r"[^\s\"',\[\]]+")
_NO_TESTS = frozenset({".git", KEPT, "node_modules", "__pycache__"})
_WORD = re.compile(r"[A-Za-z_]\w{3,}")


def files_of_tests(folder: Path, request: dict[str, Any], named: frozenset[str]) -> tuple[list[str], int]:
    """The files to hand to pytest, those that speak most of the change first, and how many are left out."""
    if named:
        # earlier stored paths are relative to pytest's root, which may lie above
        asked = {Path(above, name.partition("::")[0]) for name in named for above in (folder, *folder.parents)}
        return sorted(str(path) for path in asked if path.is_file()), 0
    words = frozenset(request["words"])
    spoken = {path: _words(path) & words for path in _below(folder, frozenset(request["ignored"]))}
    uses = Counter(word for some in spoken.values() for word in some)
    # comments of the change have rare words, too: a file named after a changed module comes before all that speak
    ranked = sorted(
        spoken, key=lambda path: (_subject(path) not in words, -sum(1 / uses[word] for word in spoken[path]), str(path))
    )
    most = int(request["most"])
    return [str(path) for path in ranked[:most]], max(0, len(ranked) - most)


def configured_patterns(folder: Path) -> list[str]:
    """The names that the repository's own configuration of pytest gives to files of tests, as `testarray.py` of param.

    https://docs.pytest.org/en/stable/reference/reference.html#confval-python_files
    """
    texts = [(folder / name).read_text("utf-8", "replace") for name in _CONFIGURATIONS if (folder / name).is_file()]
    values = [value for text in texts for value in _PYTHON_FILES.findall(text)]
    lines = [line.partition("#")[0] for value in values for line in value.splitlines()]
    # without an extension it is a pattern of doctests, or matches nothing by name alone
    return [pattern for line in lines for pattern in _PATTERN.findall(line) if pattern.endswith(".py")]


def _below(folder: Path, ignored: Iterable[str]) -> Iterator[Path]:
    patterns = configured_patterns(folder)
    for place, folders, files in os.walk(str(folder)):
        folders[:] = [name for name in folders if name not in _NO_TESTS and str(Path(place, name)) not in ignored]
        for path in (Path(place, name) for name in files):
            is_test = _TEST_FILE.match(path.name) or any(_matches(path, pattern) for pattern in patterns)
            # a link may lead into a submodule, which is empty here
            if is_test and path.is_file():
                yield path


def _matches(path: Path, pattern: str) -> bool:
    """Return True if *path* matches: a pattern without a slash is that of a name."""
    return fnmatch(str(path), f"*/{pattern}") if "/" in pattern else fnmatch(path.name, pattern)


def _subject(path: Path) -> str:
    """The module that a file of tests is named after."""
    return re.sub(r"^test_?|_tests?$", "", path.stem)


def _words(path: Path) -> set[str]:
    return set(_WORD.findall(path.read_bytes().decode(errors="replace")))
