"""What one repository's git history tells about its pull requests.

There are three kinds of traces on the default branch's first-parent line: `Merge pull request #N from …`, a trailing
`(#N)` where GitHub squashed, and merges whose second parent is the tip of `refs/pull/N/head`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.git.command import GitError, git

_FORMAT = "%H%x1f%P%x1f%at%x1f%ct%x1f%an%x1f%ae%x1f%cn%x1f%ce%x1f%B"
_FIELDS = 9
_MERGE = re.compile(r"(?:[A-Z]+: )?Merge pull request #(\d+)(?: from (\S+))?")
_SQUASH = re.compile(r"\(#(\d+)\)$")
_GITHUB = "noreply@github.com"


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


@dataclass(frozen=True, slots=True)
class Mark:
    """A commit of the default branch that merged pull request `number`; no title where its message names none."""

    number: int
    commit: Commit
    head_sha: str | None
    title: str
    body: str
    branch: str = ""
    """`owner/branch`, where the message names it."""


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
    """The commit that *revision* names, None when there is none."""
    try:
        sha = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError:
        return None
    return read_commits(repository, "--no-walk", revisions=[sha.decode().strip()])[0]


def marks(line: Sequence[Commit], heads: Heads) -> dict[int, Mark]:
    """Every merged pull request that *line* (the first-parent line, newest first) shows, by number."""
    by_head = {sha: number for number, sha in heads.pulls.items()}
    found: dict[int, Mark] = {}
    doubtful: list[Mark] = []
    confirmed = 0
    for commit in line:
        for mark in _marks_of(commit, by_head, heads.pulls):
            if len(commit.parents) < 2 and mark.head_sha is None and commit.committer_email != _GITHUB:
                doubtful.append(mark)
                continue
            confirmed += len(commit.parents) < 2 and mark.head_sha is not None
            _take(found, mark, heads.pulls)
    # Where the pull refs of squashed ones are kept, a `(#N)` without one refers to an issue, or to another tracker.
    if confirmed <= len(doubtful):
        for mark in doubtful:
            _take(found, mark, heads.pulls)
    return found


def _take(found: dict[int, Mark], mark: Mark, pulls: Mapping[int, str]) -> None:
    """Keep the oldest mark: later commits refer to a pull request. Only the merge itself has its head as a parent."""
    known, head = found.get(mark.number), pulls.get(mark.number)
    if known is None or head not in known.commit.parents or head in mark.commit.parents:
        found[mark.number] = mark


def _marks_of(commit: Commit, by_head: Mapping[str, int], pulls: Mapping[int, str]) -> Iterator[Mark]:
    subject = commit.subject
    merge, squash = _MERGE.match(subject), _SQUASH.search(subject)
    named = int(merge[1]) if merge else int(squash[1]) if squash else 0
    if merge:
        title, _, body = commit.body.partition("\n")
        title = title.strip() or (merge[2] or subject).rpartition("/")[2]
        head = commit.parents[1] if len(commit.parents) > 1 else pulls.get(named)
        yield Mark(named, commit, head, title, body.strip(), merge[2] or "")
    elif squash and named:
        title = subject[: squash.start()].strip() or subject
        head = commit.parents[1] if len(commit.parents) > 1 else pulls.get(named)
        yield Mark(named, commit, head, title, commit.body)
    for parent in commit.parents[1:]:
        number = by_head.get(parent)
        if number is not None and number != named:
            yield Mark(number, commit, parent, "", commit.body)


class Topology:
    """Which commits are whose: parents and times of the default branch and of the given heads, read at once.

    Every commit of the default branch has the position of the first-parent commit that brought it in.
    """

    def __init__(self, repository: Path, line: Sequence[Commit], heads: Sequence[str]) -> None:
        stdin = "".join(f"{sha}\n" for sha in (*(commit.sha for commit in line[:1]), *heads)).encode()
        raw = git(repository, "rev-list", "--ignore-missing", "--parents", "--timestamp", "--stdin", stdin=stdin)
        self._parents: dict[str, tuple[str, ...]] = {}
        self._times: dict[str, int] = {}
        for row in raw.decode().splitlines():
            time, sha, *parents = row.split()
            self._parents[sha], self._times[sha] = tuple(parents), int(time)
        self._position: dict[str, int] = {}
        for position, commit in enumerate(reversed(line)):
            pending = [commit.sha]
            while pending:
                sha = pending.pop()
                if sha not in self._position:
                    self._position[sha] = position
                    pending += self._parents.get(sha, ())

    def knows(self, sha: str) -> bool:
        """Whether the commit is here."""
        return sha in self._parents

    def own(self, head: str, base: str | None) -> Own:
        """What *head* has that *base* (a first-parent commit of the default branch) has not."""
        limit = self._position.get(base, -1) if base else -1
        seen: set[str] = set()
        fork, fork_position = base or "", -1
        pending = [head]
        while pending:
            sha = pending.pop()
            position = self._position.get(sha)
            if position is not None and position <= limit:
                if position > fork_position:
                    fork, fork_position = sha, position
            elif sha not in seen:
                seen.add(sha)
                pending += self._parents.get(sha, ())
        return Own(len(seen), min((self._times[sha] for sha in seen if sha in self._times), default=0), fork)


@dataclass(frozen=True, slots=True)
class Own:
    """The commits of a pull request: how many, when the first was committed, from where they fork."""

    count: int
    first: int
    fork: str
