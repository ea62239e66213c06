"""The commits of a pull request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formulacode_dagster.git.log import Commit, find_commit, read_commits
from formulacode_dagster.models.pull_request import MergeKind

from .threads import PullRequest


def commits_of(repository: Path, pull_request: PullRequest) -> list[Commit]:
    """The commits on the branch of *pull_request*, oldest first, as many as it counts.

    Where the branch is not kept, the merged commits stand for them, the last one under the branch's hash.
    """
    if pull_request.head_known:
        base = pull_request.base_sha or "HEAD"
        found = read_commits(repository, "--topo-order", "--reverse", revisions=[pull_request.head_sha, f"^{base}"])
        if found:
            return found
    merged = find_commit(repository, pull_request.merge_sha or pull_request.head_sha)
    if merged is None:
        return []
    if pull_request.merge_kind is MergeKind.REBASE and pull_request.base_sha:
        chain = read_commits(repository, "--reverse", revisions=[merged.sha, f"^{pull_request.base_sha}"])
        return [*chain[:-1], replace(chain[-1], sha=pull_request.head_sha)]
    parents = (pull_request.base_sha,) if pull_request.base_sha else merged.parents
    return [replace(merged, sha=pull_request.head_sha, parents=parents, message=pull_request.title)]
