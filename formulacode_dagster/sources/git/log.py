"""Output of `git log`: commits with their messages, and the refs of pull requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from .command import GitError, git

GHOST = "ghost"
"""GitHub's name for a deleted account."""
_FORMAT = "%H%x1f%P%x1f%at%x1f%ct%x1f%an%x1f%ae%x1f%cn%x1f%ce%x1f%B"
_FIELDS = 9
_NOREPLY = re.compile(r"(?:\d+\+)?([A-Za-z0-9\[\]-]+)@users\.noreply\.github\.com", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its message. Times are seconds since 1970."""

    sha: str
    parents: tuple[str, ...]
    authored: int
    committed: int
    author: str
    author_email: str
    committer: str
    committer_email: str
    message: str

    @property
    def subject(self) -> str:
        """The first line."""
        return self.message.partition("\n")[0].strip()

    @property
    def body(self) -> str:
        """All but the first line."""
        return self.message.partition("\n")[2].strip()


@dataclass(frozen=True)
class Heads:
    """The refs that matter."""

    default_branch: str
    tip: str
    pulls: Mapping[int, str] = field(default_factory=dict)
    """Head commit by number, from `refs/pull/N/head`."""
    mergeable: frozenset[int] = frozenset()
    """Numbers with a `refs/pull/N/merge`."""


def read_heads(repository: Path) -> Heads:
    """The refs of *repository*; an empty tip when its default branch has no commit."""
    branch = git(repository, "symbolic-ref", "HEAD").decode().strip().removeprefix("refs/heads/")
    listed = git(
        repository, "for-each-ref", "--format=%(objectname) %(refname)", f"refs/heads/{branch}", "refs/pull/"
    ).decode()
    tip, pulls, mergeable = "", {}, set()
    for line in listed.splitlines():
        sha, _, ref = line.partition(" ")
        parts = ref.split("/")
        if ref == f"refs/heads/{branch}":
            tip = sha
        elif len(parts) == 4 and parts[2].isdigit():
            if parts[3] == "head":
                pulls[int(parts[2])] = sha
            elif parts[3] == "merge":
                mergeable.add(int(parts[2]))
    return Heads(branch, tip, pulls, frozenset(mergeable))


def read_commits(repository: Path, *arguments: str, revisions: Sequence[str] = ()) -> list[Commit]:
    """`git log` of *arguments* and *revisions* (as many as you like), parsed."""
    stdin = "".join(f"{revision}\n" for revision in revisions).encode()
    raw = git(repository, "log", "-z", f"--format={_FORMAT}", *arguments, "--stdin", "--", stdin=stdin)
    entries = (entry.split("\x1f", _FIELDS - 1) for entry in raw.decode("utf-8", "replace").split("\0"))
    return [
        Commit(f[0].strip(), tuple(f[1].split()), int(f[2]), int(f[3]), f[4], f[5], f[6], f[7], f[8].strip())
        for f in entries
        if len(f) == _FIELDS
    ]


def find_commit(repository: Path, revision: str) -> Commit | None:
    """Return the commit that *revision* names, None if there is none."""
    try:
        sha = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError:
        return None
    return read_commits(repository, "--no-walk", revisions=[sha.decode().strip()])[0]


def login(name: str | None) -> str | None:
    """Return None for a deleted account, `ghost`."""
    return None if name in (None, "", GHOST) else name


def login_of(name: str, email: str) -> str | None:
    """A login for the author of a commit: from GitHub's no-reply address, else from the name."""
    match = _NOREPLY.fullmatch(email.strip())
    if match:
        return match[1]
    return login(re.sub(r"[^A-Za-z0-9\[\]]+", "-", name).strip("-")[:39])


def from_epoch(seconds: int) -> datetime:
    """A moment from git's seconds since 1970."""
    return datetime.fromtimestamp(max(0, seconds), UTC)
