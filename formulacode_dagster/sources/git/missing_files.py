"""Files of a commit whose contents a mirror lacks: found before any work, named, with the command that brings them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from formulacode_dagster.models.base import listed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .blobs import REMOTE, is_filtered, missing_objects
from .command import GitError, git
from .damage import BROKEN_MARK
from .faults import translate

UNREAD_FOLDERS = frozenset(
    {"demo", "demos", "doc", "docs", "documentation", "examples", "gallery", "img", "notebooks", "paper", "tutorials"}
)
READ_SUFFIXES = frozenset(
    {
        *(
            ".c",
            ".cc",
            ".cfg",
            ".cpp",
            ".f",
            ".f90",
            ".h",
            ".hpp",
            ".in",
            ".ini",
            ".json",
            ".md",
            ".pxd",
            ".pxi",
            ".py",
        ),
        *(".pyx", ".rs", ".rst", ".toml", ".txt", ".yaml", ".yml", ""),
    }
)
"""Files of the folders above that a build may read, or that may show workloads."""
_MISSING = "?"


def is_read_by_nothing(path: str) -> bool:
    """Return True for pictures, data and notebooks of documentation: no workload, test or build reads *path*."""
    folder, _, name = path.partition("/")
    return bool(name) and folder.lower() in UNREAD_FOLDERS and Path(name).suffix.lower() not in READ_SUFFIXES


def require_files(repository: str, mirror: Path, *commits: str) -> tuple[str, ...]:
    """Raise ItemFailure `files_missing` if *mirror* lacks a file or folder of *commits* that something may read.

    Returns the paths of other missing files, which stay absent. Costs one git call a commit. A filtered mirror is not
    looked at: its host has the rest, and `Mirror.complete` fetches it. After a failure the next `MirrorCache.ensure`
    makes the mirror again.
    """
    absent: set[str] = set()
    if is_filtered(mirror):
        return ()
    for commit in dict.fromkeys(commits):
        try:
            answer = git(mirror, "rev-list", "--objects", "--no-walk", "--missing=print", commit).decode(
                errors="replace"
            )
        except GitError as error:
            raise translate(error, "look for the files of", repository) from error
        missing = [line.removeprefix(_MISSING) for line in answer.splitlines() if line.startswith(_MISSING)]
        paths = _paths(mirror, commit, missing) if missing else []
        if not all(map(is_read_by_nothing, paths)):
            (mirror / BROKEN_MARK).touch()
            raise files_missing(repository, mirror, missing, commit)
        absent.update(paths)
    return tuple(sorted(absent))


def files_missing(repository: str, mirror: Path, missing: Sequence[str], commit: str = "") -> ItemFailure:
    """Return the failure for the objects *missing* of *commit*, which neither *mirror* has nor its host sent."""
    paths = _paths(mirror, commit, missing) if commit else list(missing)
    noun = "file is" if len(paths) == 1 else "files are"
    where = f"commit {commit[:12]} in the mirror of {repository}" if commit else f"the mirror of {repository}"
    return ItemFailure(
        FailureKind.FILES_MISSING,
        f"{len(paths)} {noun} missing from {where}: {listed(paths)}",
        remedy=_remedy(mirror, missing, commit),
    )


def _paths(mirror: Path, commit: str, missing: Sequence[str]) -> list[str]:
    """Paths of the contents *missing*; ids where a folder is missing too, so that no path is known."""
    try:
        out = git(mirror, "ls-tree", "-r", "-z", "--full-tree", commit)
    except GitError:
        return sorted(missing)
    wanted = set(missing)
    entries = (entry.partition(b"\t") for entry in out.split(b"\0") if entry)
    named = (os.fsdecode(path) for facts, _, path in entries if facts.split()[2].decode() in wanted)
    return sorted(ascii(path)[1:-1] for path in named) or sorted(missing)


def _remedy(mirror: Path, missing: Sequence[str], commit: str) -> str:
    source = _source(mirror)
    if source is None:
        return "Run again once the host in GITHUB_CLONE_URL has them"
    try:
        if not missing_objects(source, missing):
            return f"Run again: the mirror is then copied from {source}, which has them"
    except GitError:
        return f"Make {source} again, then run again"
    # by its name: its address may contain a token
    remote = REMOTE if _url(source) else f"https://github.com/{source.parent.name}/{source.stem}.git"
    command = ["git", "-C", str(source), "fetch", "--refetch", "--no-filter", remote, commit or missing[0]]
    return f"Fetch them into {source}, then run again: {shlex.join(command)}"


def _source(mirror: Path) -> Path | None:
    """The folder on this machine that *mirror* is a copy of; None if it comes from a host."""
    folder = Path(_url(mirror).removeprefix("file://"))
    return folder if folder.is_absolute() and folder.is_dir() else None


def _url(repository: Path) -> str:
    try:
        return git(repository, "config", "--get", f"remote.{REMOTE}.url").decode().strip()
    except GitError:
        return ""
