"""The changed lines of a patch, by file and side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

if TYPE_CHECKING:
    from unidiff.patch import PatchedFile


@dataclass(frozen=True)
class FileChange:
    """The lines of one file that a patch touches. An insertion touches the base's lines around it."""

    base_path: str | None
    oracle_path: str | None
    base_lines: frozenset[int]
    oracle_lines: frozenset[int]

    @property
    def path(self) -> str:
        """The path after the change, or before it when the file was deleted."""
        return self.oracle_path or self.base_path or ""


def changed_files(patch: bytes) -> tuple[FileChange, ...]:
    """Read *patch*, a git diff in any encoding; raises ItemFailure (kind `malformed_patch`) when it is none."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        # Latin-1 maps every byte to one character, so content in any encoding keeps its lines.
        parsed = PatchSet(patch.decode("latin-1"))
    except UnidiffParseError as error:
        raise ItemFailure(FailureKind.MALFORMED_PATCH, "the patch cannot be read", why=str(error)) from error
    return tuple(_file_change(file) for file in parsed)


def _file_change(file: PatchedFile) -> FileChange:
    base_lines: set[int] = set()
    oracle_lines: set[int] = set()
    for hunk in file:
        before, replacing = hunk.source_start, False
        for line in hunk:
            if line.is_added and line.target_line_no is not None:
                oracle_lines.add(line.target_line_no)
                if not replacing:
                    base_lines |= {before, before + 1}
            elif line.source_line_no is not None:
                before, replacing = line.source_line_no, line.is_removed
                if replacing:
                    base_lines.add(before)
    return FileChange(
        base_path=_path(file.source_file, "a/"),
        oracle_path=_path(file.target_file, "b/"),
        base_lines=frozenset(base_lines),
        oracle_lines=frozenset(oracle_lines),
    )


def _path(name: str, prefix: str) -> str | None:
    """The path behind git's prefix and, for names that are not plain ASCII, its quoting; None for no file."""
    if name == "/dev/null":
        return None
    if name.startswith('"') and name.endswith('"'):
        quoted = name[1:-1].encode("latin-1")
        name = re.sub(rb"\\([0-7]{3}|.)", _unescape, quoted).decode("utf-8", "surrogateescape")
    return name.removeprefix(prefix)


def _unescape(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes([int(escaped, 8)])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(escaped, escaped)
