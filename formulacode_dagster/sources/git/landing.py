"""How a pull request was merged, and onto which commit: read from commits, never from a title.

Two or more parents are a merge. One parent is a squash, or the last commit of a rebase; the pull request's own commits
tell them apart (a rebase keeps author, date and message of each), otherwise dates and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from formulacode_dagster.models.pull_request import MergedPullRequest, MergeKind

from .history import Mirror
from .objects import Commit

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
REBASE_SECONDS = 10
"""GitHub writes the commits of one rebase within moments; separate squashes are further apart, or have other sizes."""


@dataclass(frozen=True)
class Landing:
    """Kind, and the commit on which the pull request was put; `base_sha` is empty for a root commit."""

    kind: MergeKind
    base_sha: str


class Merged(Protocol):
    """The commits of a merged pull request, as GitHub names them."""

    @property
    def merge_commit_sha(self) -> str:
        """The commit that landed."""

    @property
    def head_sha(self) -> str:
        """The last of its own commits."""

    @property
    def commit_count(self) -> int:
        """Number of the pull request's own commits."""


def wanted_commits(pull_requests: Iterable[Merged]) -> tuple[str, ...]:
    """Return the commits that a mirror needs to determine how *pull_requests* were merged: for `MirrorCache.ensure`.

    Merge commits, and the heads of those with several commits: only they can be either a squash or a rebase.
    """
    wanted: dict[str, None] = {}
    for facts in pull_requests:
        wanted[facts.merge_commit_sha] = None
        if facts.commit_count > 1:
            wanted[facts.head_sha] = None
    return tuple(wanted)


def compared_trees(mirror: Mirror, facts: Merged) -> list[tuple[str, str]]:
    """The pairs of trees that the change of *facts* may turn out to lie between; their commits are in *mirror*.

    Guessed from commits only: all parents of the merge, and their history if it ends as the branch does.
    """
    merge = mirror.commit(facts.merge_commit_sha)
    bases = [mirror.commit(sha) for sha in merge.parents]
    if len(merge.parents) == 1 and facts.commit_count > 1 and _ends_alike(mirror, facts, merge):
        *_, last = _chain(mirror, merge, facts.commit_count)
        bases += [mirror.commit(sha) for sha in last.parents]
    return [(base.tree, merge.tree) for base in bases] or [(EMPTY_TREE, merge.tree)]


def _ends_alike(mirror: Mirror, facts: Merged, merge: Commit) -> bool:
    if not mirror.has(facts.head_sha):
        dates = [commit.committed for commit in _chain(mirror, merge, facts.commit_count)]
        return max(dates) - min(dates) <= REBASE_SECONDS
    return mirror.commit(facts.head_sha).identity == merge.identity


def landing_of(mirror: Mirror, facts: MergedPullRequest, merge: Commit) -> Landing:
    """Return how *facts* was merged as *merge*. Raises ItemFailure (`commit_missing`) if history is missing."""
    if facts.head_sha == merge.sha and facts.commit_count > 0:
        return _pushed(mirror, merge, facts.commit_count)
    if len(merge.parents) > 1:
        # Merged the wrong way round: the branch took in the base, and was then pushed as the base.
        wrong_way = merge.parents[0] == facts.head_sha and len(merge.parents) == 2
        return Landing(MergeKind.MERGE, merge.parents[1 if wrong_way else 0])
    if not merge.parents:
        return Landing(MergeKind.SQUASH, "")
    chain = list(_chain(mirror, merge, facts.commit_count))
    depth = _rebased(mirror, facts, chain) if len(chain) > 1 else 1
    if depth > 1:
        return Landing(MergeKind.REBASE, chain[depth - 1].parents[0])
    return Landing(MergeKind.SQUASH, merge.parents[0])


def _chain(mirror: Mirror, merge: Commit, count: int) -> Iterator[Commit]:
    """*merge* and the single-parent commits below it, at most *count*."""
    commit = merge
    for _ in range(count):
        if len(commit.parents) != 1:
            return
        yield commit
        commit = mirror.commit(commit.parents[0])


def _pushed(mirror: Mirror, merge: Commit, count: int) -> Landing:
    """The branch itself was pushed: its base is the nearest commit with *count* commits after it."""
    chain = list(_chain(mirror, merge, count))
    if len(chain) == count:
        return Landing(MergeKind.SQUASH if count == 1 else MergeKind.REBASE, chain[-1].parents[0])
    candidates: list[str] = []
    commit = merge
    for _ in range(count):
        candidates += reversed(commit.parents)
        if not commit.parents:
            break
        commit = mirror.commit(commit.parents[0])
    base = next((sha for sha in candidates if mirror.distance(sha, merge.sha) == count), None)
    if base is not None:
        return Landing(MergeKind.REBASE, base)
    return Landing(MergeKind.MERGE if len(merge.parents) > 1 else MergeKind.SQUASH, (*merge.parents, "")[0])


def _rebased(mirror: Mirror, facts: MergedPullRequest, chain: list[Commit]) -> int:
    """Return how many commits of *chain* (newest first, two or more) belong to the pull request; 1 for a squash."""
    whole = len(chain)
    if not mirror.has(facts.head_sha):
        return whole if _looks_rebased(mirror, facts, chain) else 1
    own = {commit.identity for commit in mirror.own_commits(facts.head_sha, chain[0].sha)}
    depth = next((index for index, commit in enumerate(chain) if commit.identity not in own), whole)
    if 1 < depth < min(len(own), whole) and _size(mirror, chain, whole) == facts.changed_files:
        # some messages were edited; the number of files shows that all commits are there
        return whole if _size(mirror, chain, depth) != facts.changed_files else depth
    return max(depth, 1)


def _looks_rebased(mirror: Mirror, facts: MergedPullRequest, chain: list[Commit]) -> bool:
    if len(chain) < facts.commit_count:
        return False
    dates = [commit.committed for commit in chain]
    if max(dates) - min(dates) > REBASE_SECONDS:
        return False
    return _size(mirror, chain, len(chain)) == facts.changed_files


def _size(mirror: Mirror, chain: list[Commit], depth: int) -> int:
    return mirror.files_between(chain[depth - 1].parents[0], chain[0].sha)
