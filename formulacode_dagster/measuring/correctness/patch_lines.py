"""The lines that a patch removes and adds, and what of it belongs to tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.suites.compiled import is_compiled_source
from formulacode_dagster.sources.git.diff import split_patch

_WORD = re.compile(r"[A-Za-z_]\w{3,}")


@dataclass(frozen=True)
class PatchLines:
    """What of a patch a test can reach, and the tests that come with it."""

    base: Mapping[str, frozenset[int]]
    """Removed lines by the path of their Python file."""
    oracle: Mapping[str, frozenset[int]]
    """Added lines by the path of their Python file."""
    untraceable: tuple[str, ...]
    """Changed sources of compiled code, and what else of Python runs compiled."""
    tests: tuple[str, ...]
    """Changed files that belong to tests, by their paths after the change, or before it where they are deleted."""
    words: frozenset[str]
    """What the changed sources are called, and what their changed lines speak of."""


def patch_lines(patch: bytes, *, benchmark_dir: str, hidden: Iterable[str] = ()) -> PatchLines:
    """Sort the lines of *patch*, a git diff; what it does to the benchmarks is left out.

    *hidden* is what of it is known to run compiled: the patch alone does not tell that of Python.
    """
    base: dict[str, frozenset[int]] = {}
    oracle: dict[str, frozenset[int]] = {}
    untraceable: list[str] = []
    tests: list[str] = []
    words: set[str] = set()
    for file in split_patch(patch):
        path = PurePosixPath(file.path)
        if path.is_relative_to(benchmark_dir):
            continue
        if is_of_tests(path):
            tests += dict.fromkeys(name for name in (file.old_path, file.new_path) if name)
            continue
        if is_compiled_source(path):
            untraceable.append(file.path)
        elif path.suffix == ".py":
            removed, added = file.lines_of("-"), file.lines_of("+")
            if file.old_path and removed:
                base[file.old_path] = removed
            if file.new_path and added:
                oracle[file.new_path] = added
        else:
            continue
        words |= {path.stem, *(word for line in file.changed_lines() for word in _WORD.findall(line.text))}
    unseen = tuple(dict.fromkeys([*untraceable, *hidden]))
    return PatchLines(base, oracle, unseen, tuple(tests), frozenset(words))
