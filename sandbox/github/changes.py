"""Size of pull requests in files and lines, many at a time.

A folder may lack contents: their files are listed without lines, and a diff names them as it does binary files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.sources.git.blobs import NO_OBJECT, missing_objects
from formulacode_dagster.sources.git.command import GitError, git

from .threads import PullRequest

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


@dataclass(frozen=True, slots=True)
class Size:
    """A diff's size."""

    files: int = 0
    additions: int = 0
    deletions: int = 0


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a diff. `status` is one of STATUS' values, `blob` the new content, `old_path` set for a rename."""

    path: str
    status: str
    additions: int
    deletions: int
    old_path: str | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The two commits whose difference a pull request is; an empty *before* is the empty tree."""

    before: str
    after: str


def span_of(repository: Path, pull_request: PullRequest) -> Span:
    """Return both ends of *pull_request*; an unmerged one is compared with its fork point from the default branch."""
    if pull_request.merge_sha is not None:
        return Span(pull_request.base_sha, pull_request.merge_sha)
    try:
        fork = git(repository, "merge-base", "HEAD", pull_request.head_sha).decode().strip()
    except GitError:
        fork = ""
    return Span(fork, pull_request.head_sha)


def sizes_of(repository: Path, spans: Sequence[Span]) -> list[Size]:
    """The size of each span, by one process for all unless contents are missing."""
    try:
        return _sizes_by_contents(repository, spans)
    except GitError:
        listed = [files_of(repository, span) for span in spans]
    return [
        Size(len(files), sum(file.additions for file in files), sum(file.deletions for file in files))
        for files in listed
    ]


def _sizes_by_contents(repository: Path, spans: Sequence[Span]) -> list[Size]:
    lines = "".join(f"{span.after} {span.before}".strip() + "\n" for span in spans)
    raw = git(
        repository, "diff-tree", "--stdin", "-r", "-M", "-z", "--root", "--always", "--numstat", stdin=lines.encode()
    )
    sizes: list[Size] = []
    files = additions = deletions = 0
    entries = iter(raw.split(b"\0"))
    for entry in entries:
        if b"\t" in entry:
            added, deleted, path = entry.split(b"\t", 2)
            files += 1
            additions += _count(added.decode())
            deletions += _count(deleted.decode())
            if not path:
                next(entries), next(entries)
        elif entry:
            if sizes or files:
                sizes[-1] = Size(files, additions, deletions)
            sizes.append(Size())
            files = additions = deletions = 0
    if sizes:
        sizes[-1] = Size(files, additions, deletions)
    return sizes


def files_of(repository: Path, span: Span) -> list[FileChange]:
    """Every file of the span, by path."""
    ends = (span.before or _EMPTY_TREE, span.after)
    listing = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev")
    try:
        return _read_files(git(repository, *listing, "-M", "--numstat", *ends))
    except GitError:
        pass
    try:
        listed = _read_files(git(repository, *listing, *ends))
        readable, _ = _by_contents(repository, ends)
        counted = _read_files(git(repository, *listing, "--numstat", *ends, "--", *readable)) if readable else []
    except GitError:
        # folders are missing, too
        return []
    known = {file.path: file for file in counted}
    return [known.get(file.path, file) for file in listed]


def _by_contents(repository: Path, ends: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Paths whose contents are there on both sides, and the others. Raises GitError if folders are missing."""
    fields = os.fsdecode(git(repository, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", *ends)).split("\0")[:-1]
    sides = {path: set(facts.split()[2:4]) for facts, path in zip(fields[::2], fields[1::2], strict=True)}
    missing = missing_objects(repository, set().union(*sides.values()) - {NO_OBJECT})
    return [path for path in sides if not sides[path] & missing], [path for path in sides if sides[path] & missing]


def _read_files(raw: bytes) -> list[FileChange]:
    entries = iter(raw.decode("utf-8", "replace").split("\0"))
    kinds: dict[str, tuple[str, str | None, str]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if entry.startswith(":"):
            _, _, _, blob, letter = entry.split()
            old = next(entries) if letter[0] in "RC" else None
            kinds[next(entries)] = (letter[0], old, blob)
        elif entry:
            added, deleted, path = entry.split("\t", 2)
            if not path:
                next(entries)
                path = next(entries)
            counts[path] = (_count(added), _count(deleted))
    return [
        FileChange(path, STATUS.get(letter, "changed"), *counts.get(path, (0, 0)), old, None if letter == "D" else blob)
        for path, (letter, old, blob) in sorted(kinds.items())
    ]


def _count(text: str) -> int:
    """Lines; a binary file has none."""
    return int(text) if text.isdigit() else 0


def diff_of(repository: Path, span: Span, *paths: str) -> bytes:
    """Return the span as a unified diff, of *paths* only if any are given."""
    ends = (span.before or _EMPTY_TREE, span.after)
    command = ("diff", "--full-index", "--binary", "-M", *ends, "--")
    try:
        return git(repository, *command, *paths)
    except GitError:
        pass
    try:
        readable, others = _by_contents(repository, ends)
    except GitError:
        return b""
    shown = [path for path in readable if not paths or path in paths]
    diff = git(repository, *command, *shown) if shown else b""
    named = (f"diff --git a/{path} b/{path}\nBinary files a/{path} and b/{path} differ\n" for path in others)
    return diff + b"".join(map(os.fsencode, named))
