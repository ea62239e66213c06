"""Merged pull requests derived from the history: commits, merge kind, time, people.

Of a squash whose branch is gone, the history keeps neither head nor number of commits; a rebase, and a merge into
another branch than the default one, leaves no trace at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sources.git.command import git
from formulacode_dagster.sources.git.log import Commit, Heads, find_commit, from_epoch, login_of, read_commits

from .marks import Mark, marks
from .side_file import PullRequestFacts


@dataclass(frozen=True, slots=True)
class Landed:
    """A merged pull request. Without its head, `head_sha` is None, or `head_known` is false if it is only a name."""

    number: int
    commit: Commit
    title: str
    body: str
    author: str | None
    base_sha: str
    fork_sha: str
    head_sha: str | None
    head_known: bool
    commit_count: int
    created_at: datetime
    merged_at: datetime
    facts: PullRequestFacts
    """Given data about it; its times are already merged in."""


def landed(
    repository: Path,
    name: str,
    heads: Heads,
    line: Sequence[Commit],
    *,
    told: Iterable[PullRequestFacts] = (),
    issues: Collection[int] = (),
) -> dict[int, Landed]:
    """Every merged pull request of the git directory *repository*, known as *name*, by number.

    *line* is the default branch's first-parent line, newest first; numbers in *issues* are not pull requests. Raises
    GitError, and ConfigurationError if *told* names a missing merge commit.
    """
    return _Reader(repository, name, heads, line, {change.number: change for change in told}).read(issues)


@dataclass(frozen=True)
class _Reader:
    repository: Path
    name: str
    heads: Heads
    line: Sequence[Commit]
    told: Mapping[int, PullRequestFacts]

    @cached_property
    def on_line(self) -> Mapping[str, int]:
        return {commit.sha: index for index, commit in enumerate(self.line)}

    def read(self, issues: Collection[int]) -> dict[int, Landed]:
        landings = {number: mark for number, mark in marks(self.line, self.heads).items() if number not in issues}
        for told in self.told.values():
            if told.merge_commit_sha:
                landings[told.number] = self._named(told.number, told.merge_commit_sha, landings.get(told.number))
            if told.head_sha and told.number in landings:
                landings[told.number] = replace(landings[told.number], head_sha=told.head_sha)
        landings = self._titled(landings)
        topology = Topology(self.repository, self.line, [mark.head_sha for mark in landings.values() if mark.head_sha])
        return {number: self._landed(mark, topology) for number, mark in landings.items()}

    def _named(self, number: int, sha: str, derived: Mark | None) -> Mark:
        """Return the given mark."""
        index = self.on_line.get(sha)
        commit = self.line[index] if index is not None else find_commit(self.repository, sha)
        if commit is None:
            raise missing_commit(self.repository, self.name, number, sha)
        if derived is not None and derived.commit.sha == commit.sha:
            return derived
        head = commit.parents[1] if len(commit.parents) > 1 else self.heads.pulls.get(number)
        return Mark(number, commit, head, commit.subject, commit.body)

    def _titled(self, marks_by_number: Mapping[int, Mark]) -> dict[int, Mark]:
        """Return *marks_by_number*, with titles missing from merge messages taken from the branches' last commits."""
        heads = [mark.head_sha for mark in marks_by_number.values() if not mark.title and mark.head_sha]
        commits = read_commits(self.repository, "--no-walk=unsorted", revisions=heads) if heads else []
        titles = {commit.sha: commit.subject for commit in commits}
        return {
            number: mark if mark.title else replace(mark, title=titles.get(mark.head_sha or "") or mark.commit.subject)
            for number, mark in marks_by_number.items()
        }

    def _landed(self, mark: Mark, topology: Topology) -> Landed:
        commit, told = mark.commit, self.told.get(mark.number) or PullRequestFacts(number=mark.number)
        known = mark.head_sha is not None and topology.knows(mark.head_sha)
        count = told.commit_count
        base = commit.parents[0] if commit.parents else ""
        own = Own(1, commit.authored, base)
        if told.merge_kind is MergeKind.REBASE:
            head = mark.head_sha if known else None
            steps = count or (topology.own(head, base).count if head else 1)
            base = self._ancestor(commit, steps)
            own = topology.own(head, base) if head else Own(steps, commit.authored, base)
        elif known and mark.head_sha:
            own = topology.own(mark.head_sha, base)
        owner = mark.branch.partition("/")[0]
        merged_at = told.merged_at or from_epoch(commit.committed)
        return Landed(
            number=mark.number,
            commit=commit,
            title=mark.title,
            body=mark.body,
            author=self._author(owner, commit),
            base_sha=base,
            fork_sha=own.fork or base,
            head_sha=mark.head_sha,
            head_known=known,
            commit_count=count or max(1, own.count),
            created_at=told.created_at or min(from_epoch(own.first or commit.committed), merged_at),
            merged_at=merged_at,
            facts=told,
        )

    def _ancestor(self, commit: Commit, count: int) -> str:
        """The first-parent ancestor *count* steps below *commit*."""
        index = self.on_line.get(commit.sha)
        if index is not None and index + count < len(self.line):
            return self.line[index + count].sha
        below = find_commit(self.repository, f"{commit.sha}~{count}")
        return below.sha if below else ""

    def _author(self, owner: str, commit: Commit) -> str | None:
        # a branch of the repository itself names its owner, who may not be the author
        if owner and owner.lower() != self.name.partition("/")[0].lower():
            return owner
        return login_of(commit.author, commit.author_email)


def missing_commit(repository: Path, name: str, number: int, what: str) -> ConfigurationError:
    """Return the error for a pull request of the side file for which *repository* has no commit."""
    return ConfigurationError(
        f"the side file's pull request {name}#{number} has no commit in {repository}",
        why=f"{what} is not there",
        remedy="Set merge_commit_sha or head_sha to a commit of the repository",
    )


class Topology:
    """Ancestry of commits: parents and times of the default branch and the given heads, read in one call.

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
        """Return True if the commit exists."""
        return sha in self._parents

    def own(self, head: str, base: str | None) -> Own:
        """Return the commits of *head* that *base* (a first-parent commit of the default branch) lacks."""
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
    """Commits of a pull request: number, time of the first, fork point."""

    count: int
    first: int
    fork: str
