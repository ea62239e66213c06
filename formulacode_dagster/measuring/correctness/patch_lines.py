"""Lines that a patch removes and adds, and its changes to tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.suites.compiled import is_compiled_source
from formulacode_dagster.building.suites.overlays import is_of_suite
from formulacode_dagster.sources.git.diff import split_patch

_WORD = re.compile(r"[A-Za-z_]\w{3,}")


@dataclass(frozen=True)
class PatchLines:
    """Lines of a patch that tests can reach, and the tests that come with it."""

    base: Mapping[str, frozenset[int]]
    """Removed lines by the path of their Python file; of one that only gains lines there are none."""
    oracle: Mapping[str, frozenset[int]]
    """Added lines by the path of their Python file; of one that only loses lines there are none."""
    untraceable: tuple[str, ...]
    """Changed sources of compiled code, and Python that runs compiled."""
    tests: tuple[str, ...]
    """Changed test files, by their paths after the change, or before it if they are deleted."""
    words: frozenset[str]
    """Names of the changed sources, and words in their changed lines."""
    deletes: bool = False
    """True if a Python file is deleted."""


def patch_lines(patch: bytes, *, benchmark_dir: str, hidden: Iterable[str] = ()) -> PatchLines:
    """Sort the lines of *patch*, a git diff; changes of benchmarks are left out.

    *hidden* lists the parts known to run compiled, which the patch does not show for Python.
    """
    base: dict[str, frozenset[int]] = {}
    oracle: dict[str, frozenset[int]] = {}
    untraceable: list[str] = []
    tests: list[str] = []
    words: set[str] = set()
    deletes = False
    for file in split_patch(patch):
        path = PurePosixPath(file.path)
        if is_of_suite(path, benchmark_dir):
            continue
        if is_of_tests(path):
            tests += dict.fromkeys(name for name in (file.old_path, file.new_path) if name)
            continue
        if is_compiled_source(path):
            untraceable.append(file.path)
        elif path.suffix == ".py":
            removed, added = file.lines_of("-"), file.lines_of("+")
            if file.old_path:
                base[file.old_path] = removed
            if file.new_path:
                oracle[file.new_path] = added
            deletes = deletes or not file.new_path
        else:
            continue
        words |= {path.stem, *(word for line in file.changed_lines() for word in _WORD.findall(line.text))}
    unseen = tuple(dict.fromkeys([*untraceable, *hidden]))
    return PatchLines(base, oracle, unseen, tuple(tests), frozenset(words), deletes)
