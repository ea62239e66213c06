"""The changed lines of a patch, by file and side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.diff import FileDiff, split_patch

_SUBMODULE = re.compile(r"^(?:index [0-9a-f.]+|(?:new|deleted) file mode|(?:old|new) mode) 160000$", re.MULTILINE)
WITHOUT_COMPILING = frozenset({".py", ".pyi", ".md", ".rst", ".yml", ".yaml"})
"""Endings of files from which nothing is compiled."""


@dataclass(frozen=True)
class FileChange:
    """The lines of one file that a patch removes from the base, and those it adds."""

    base_path: str | None
    oracle_path: str | None
    base_lines: frozenset[int]
    oracle_lines: frozenset[int]
    beside_insertions: frozenset[int]
    """Lines of the base around pure insertions, which represent them on the base."""

    @property
    def path(self) -> str:
        """The path after the change, or before it when the file was deleted."""
        return self.oracle_path or self.base_path or ""


def changed_files(patch: bytes) -> tuple[FileChange, ...]:
    """Read *patch*, a git diff in any encoding.

    Raises ItemFailure: `malformed_patch` when it is none, `oracle_does_not_apply` when it moves a submodule, whose
    content is no part of it: git leaves that out without a word.
    """
    files = split_patch(patch)
    cut = next((file.path for file in files if not all(hunk.is_whole for hunk in file.hunks())), None)
    if cut is not None or (patch.strip() and not files):
        why = "no file of it is named" if cut is None else f"a hunk of {cut} is cut short"
        raise ItemFailure(FailureKind.MALFORMED_PATCH, "the patch cannot be read", why=why)
    if submodule := next((file.path for file in files if _SUBMODULE.search(file.text)), None):
        raise ItemFailure(
            FailureKind.ORACLE_DOES_NOT_APPLY,
            f"the patch moves the submodule {submodule} to another commit",
            why="its content is not part of the patch",
        )
    return tuple(map(_file_change, files))


def changes_no_compiled_code(files: Iterable[FileChange]) -> bool:
    """Return True if every file is Python or a text that no build reads: then the base need not be built twice."""
    return all(PurePosixPath(change.path).suffix in WITHOUT_COMPILING for change in files)


def _file_change(file: FileDiff) -> FileChange:
    base_lines: set[int] = set()
    oracle_lines: set[int] = set()
    beside: set[int] = set()
    for hunk in file.hunks():
        old, new, before, replacing = hunk.old_start, hunk.new_start, hunk.old_start, False
        for line in hunk.lines:
            if line.startswith("+"):
                oracle_lines.add(new)
                new += 1
                if not replacing:
                    beside |= {before, before + 1}
                continue
            before, replacing = old, line.startswith("-")
            if replacing:
                base_lines.add(old)
            old, new = old + 1, new + (not replacing)
    lines = map(frozenset, (base_lines, oracle_lines, beside))
    return FileChange(file.old_path, file.new_path, *lines)
