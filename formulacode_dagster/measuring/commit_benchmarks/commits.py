"""Selection of commits: a list of names and ranges, as in `asv run`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change, MergedPullRequest, MergeKind, PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

RANGE = ".."
NO_PULL_REQUEST = 0
"""The number of a commit that is looked at by itself; GitHub counts from 1."""


@dataclass(frozen=True)
class RequestedCommits:
    """The commits of a repository that are to be benchmarked, oldest first, and its mirror."""

    mirror: Mirror
    commits: tuple[str, ...]


def find_commits(
    cache: MirrorCache, repository: str, names: Sequence[str], *, steps: int | None = None
) -> RequestedCommits:
    """Return the commits of *names*: hashes, branches, tags, and ranges `first..last` along first parents, without the
    first.

    The mirror is fetched again for an unknown name. With *steps*, that many are selected, evenly spaced, including the
    first and the last. Raises ConfigurationError for names without a commit, and as `MirrorCache.ensure`.
    """
    wanted = [name.strip() for part in names for name in part.split(",") if name.strip()]
    if not wanted:
        raise ConfigurationError("no commits were given", remedy="Name hashes, branches, tags, or a range first..last")
    hashes = [end for name in wanted for end in name.split(RANGE)]
    mirror = cache.ensure(repository, commits=hashes)
    try:
        commits = _resolved(mirror, wanted)
    except ItemFailure as unknown:
        if unknown.kind is not FailureKind.COMMIT_MISSING:
            raise
        mirror.close()
        mirror = cache.ensure(repository, commits=hashes, since=datetime.now(tz=UTC))
        try:
            commits = _resolved(mirror, wanted)
        except ItemFailure as failure:
            raise ConfigurationError(str(failure)) from failure
    if not commits:
        raise ConfigurationError(f"{', '.join(wanted)} holds no commit", remedy="Put the later end of a range last")
    return RequestedCommits(mirror, evenly_spread(commits, steps))


def _resolved(mirror: Mirror, names: Sequence[str]) -> tuple[str, ...]:
    shas: list[str] = []
    for name in names:
        first, is_range, last = name.partition(RANGE)
        if is_range:
            shas += mirror.between(mirror.resolve(first), mirror.resolve(last or "HEAD"))
        else:
            shas.append(mirror.resolve(name))
    return tuple(sorted(dict.fromkeys(shas), key=lambda sha: mirror.commit(sha).committed))


def evenly_spread(commits: Sequence[str], steps: int | None) -> tuple[str, ...]:
    """Return *steps* of *commits* including both ends; all if there are no more, or *steps* is None."""
    if steps is None or steps >= len(commits):
        return tuple(commits)
    if steps == 1:
        return (commits[-1],)
    return tuple(commits[round(step * (len(commits) - 1) / (steps - 1))] for step in range(steps))


def as_pull_request(mirror: Mirror, sha: str, *, repository_id: int, as_of: datetime | None = None) -> PullRequest:
    """Return the commit *sha* in the form from which images are built: an empty change with it as base.

    Its environment is of its commit date, or of *as_of*. Raises ItemFailure `commit_missing`.
    """
    commit = mirror.commit(sha)
    at = as_of or datetime.fromtimestamp(commit.committed, UTC)
    key = {"month": Month.of(at).key, "repository_id": repository_id, "number": NO_PULL_REQUEST}
    subject = commit.message.decode(errors="replace").partition("\n")[0]
    facts = MergedPullRequest(
        **key,
        repository=mirror.repository,
        title=subject,
        created_at=at,
        merged_at=at,
        base_ref="",
        head_sha="",
        merge_commit_sha=sha,
    )
    change = Change(
        **key,
        merge_kind=MergeKind.SQUASH,
        base_sha=sha,
        merge_tree_sha=commit.tree,
        patch_sha256=hashlib.sha256(b"").hexdigest(),
        patch_bytes=0,
        files=(),
    )
    return PullRequest(facts=facts, change=change)
