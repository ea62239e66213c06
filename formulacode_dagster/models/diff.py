"""A patch, read file by file. Its bytes need not be UTF-8: what is not, is read with replacement characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_HEADER = re.compile(r"^diff --git (?P<old>.+) (?P<new>.+)$")
_SIDE = re.compile(r"^[abciow]/")
_HUNK = re.compile(r"^@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")


@dataclass(frozen=True)
class ChangedLine:
    """A line that a patch adds (`+`) or removes (`-`), without its sign."""

    sign: str
    text: str


@dataclass(frozen=True)
class FileDiff:
    """The section of a patch about one file: its path after the change (before it, when deleted) and its lines."""

    path: str
    text: str

    @property
    def binary(self) -> bool:
        """Whether git wrote the content as binary, unreadable to people and models."""
        return bool(re.search(r"^(?:GIT binary patch|Binary files .* differ)$", self.text, re.MULTILINE))

    def changed_lines(self) -> Iterator[ChangedLine]:
        """Added and removed lines, in order; headers are told from content by the hunks' line counts."""
        old = new = 0
        for line in self.text.split("\n"):
            if old <= 0 and new <= 0:
                if match := _HUNK.match(line):
                    old, new = int(match["old"] or 1), int(match["new"] or 1)
                continue
            sign = line[:1]
            if sign == "\\":
                continue
            old -= sign != "+"
            new -= sign != "-"
            if sign in ("+", "-"):
                yield ChangedLine(sign, line[1:].rstrip("\r"))


def split_patch(patch: bytes) -> tuple[FileDiff, ...]:
    """The sections of *patch*, which is what `git diff` writes; empty for an empty patch."""
    text = patch.decode("utf-8", errors="replace")
    # only `\n` ends a line of a patch: a form feed or a lone `\r` is content
    starts = [match.start() for match in re.finditer(r"^diff --git ", text, re.MULTILINE)]
    sections = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    return tuple(FileDiff(path=_path_of(section), text=section) for section in sections)


def _path_of(section: str) -> str:
    head = section.partition("\n@@ ")[0]
    for prefix in ("+++ ", "rename to ", "--- "):
        for line in head.split("\n"):
            name = line.removeprefix(prefix).rstrip("\t\r").strip('"')
            if line.startswith(prefix) and name != "/dev/null":
                return name if prefix == "rename to " else _SIDE.sub("", name)
    match = _HEADER.match(head.partition("\n")[0])
    return _SIDE.sub("", match["new"].strip('"')) if match else ""
