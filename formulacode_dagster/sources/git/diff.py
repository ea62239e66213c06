"""A patch, parsed file by file. Bytes that are not UTF-8 are read as replacement characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_SECTION_WITHOUT_GIT = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
_SAME_NAME = re.compile(r'^diff --git "?[abciow]/(?P<path>.+) "?[abciow]/(?P=path)$', re.MULTILINE)
_HUNK = re.compile(r"^@@ -(?P<old>\d+)(?:,(?P<olds>\d+))? \+(?P<new>\d+)(?:,(?P<news>\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


@dataclass(frozen=True)
class ChangedLine:
    """A line that a patch adds (`+`) or removes (`-`), without its sign."""

    sign: str
    text: str
    number: int
    """Counted from 1, in the file that has the line."""
    old: int
    """Number in the old file: its own, or for an added line that of the line after it."""


@dataclass(frozen=True)
class Hunk:
    """A piece of a file's change: its first line on either side, and all its lines with their signs."""

    old_start: int
    new_start: int
    lines: tuple[str, ...]
    is_whole: bool
    """True if it has as many lines as its header says."""


@dataclass(frozen=True)
class FileDiff:
    """The section of a patch about one file; a path is None if the file does not exist on that side."""

    old_path: str | None
    new_path: str | None
    text: str

    @property
    def path(self) -> str:
        """The path after the change, or before it when the file was deleted."""
        return self.new_path or self.old_path or ""

    @property
    def binary(self) -> bool:
        """Return True if git wrote the content as binary, unreadable to people and models."""
        return bool(re.search(r"^(?:GIT binary patch|Binary files .* differ)$", self.text, re.MULTILINE))

    def hunks(self) -> Iterator[Hunk]:
        """Iterate over the hunks; the line counts of hunks distinguish headers from content."""
        lines = iter(self.text.split("\n"))
        for header in lines:
            match = _HUNK.match(header)
            if match is None:
                continue
            held: list[str] = []
            old, new = int(match["olds"] or 1), int(match["news"] or 1)
            while old > 0 or new > 0:
                if (line := next(lines, None)) is None:
                    break
                if not line.startswith("\\"):
                    held.append(line)
                    old -= not line.startswith("+")
                    new -= not line.startswith("-")
            yield Hunk(int(match["old"]), int(match["new"]), tuple(held), is_whole=old == new == 0)

    def changed_lines(self) -> Iterator[ChangedLine]:
        """Added and removed lines, in order."""
        for hunk in self.hunks():
            old, new = hunk.old_start, hunk.new_start
            for line in hunk.lines:
                if line.startswith(("+", "-")):
                    yield ChangedLine(line[0], line[1:].rstrip("\r"), new if line[0] == "+" else old, old)
                old, new = old + (not line.startswith("+")), new + (not line.startswith("-"))

    def lines_of(self, sign: str) -> frozenset[int]:
        """Numbers of the removed lines (`-`) in the old file, or of the added ones (`+`) in the new one."""
        return frozenset(line.number for line in self.changed_lines() if line.sign == sign)


def split_patch(patch: bytes) -> tuple[FileDiff, ...]:
    """Iterate over the sections of *patch*, the output of `git diff` or `diff -u`; none for an empty patch."""
    text = patch.decode("utf-8", errors="replace")
    # only `\n` ends a line of a patch: a form feed or a lone `\r` is content
    starts = [match.start() for match in _SECTION.finditer(text)]
    starts = starts or [match.start() for match in _SECTION_WITHOUT_GIT.finditer(text)]
    sections = (text[start:end] for start, end in pairwise([*starts, len(text)]))
    return tuple(FileDiff(*_paths_of(section), section) for section in sections)


def _paths_of(section: str) -> tuple[str | None, str | None]:
    head = section.partition("\n@@ ")[0]
    old, new = _named(head, "--- ", "rename from ", "copy from "), _named(head, "+++ ", "rename to ", "copy to ")
    if old is None or new is None:
        # nothing but a mode or binary content changed: one name, twice on the first line
        match = _SAME_NAME.search(head)
        old = new = _unquoted(match["path"]) if match else ""
        if "\nnew file mode " in head:
            old = "/dev/null"
        elif "\ndeleted file mode " in head:
            new = "/dev/null"
    return (None if old == "/dev/null" else old), (None if new == "/dev/null" else new)


def _named(head: str, side: str, *moved: str) -> str | None:
    """Return the name in a header line; None without such a line."""
    for prefix in (side, *moved):
        match = re.search(rf"^{re.escape(prefix)}(.+?)[\t\r]*$", head, re.MULTILINE)
        if match is not None:
            name = _unquoted(match[1])
            return re.sub(r"^[abciow]/", "", name) if prefix == side else name
    return None


def _unquoted(name: str) -> str:
    """Return a name from git's form, which is quoted and escaped unless it is plain ASCII."""
    if not name.endswith('"'):
        return name
    raw = _ESCAPE.sub(_unescape, name.removeprefix('"')[:-1].encode())
    return raw.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    return bytes([int(escaped, 8)]) if len(escaped) == 3 else _ESCAPED.get(escaped, escaped)
