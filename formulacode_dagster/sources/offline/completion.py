"""Commit data that files leave out, read from the history of the mirror."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.git.command import GitError
from formulacode_dagster.sources.git.faults import translate
from formulacode_dagster.sources.git.log import read_commits, read_heads
from formulacode_dagster.sources.git.mirror import MirrorCache

from .derived import Landed, landed


class MirrorCompletion:
    """Reads merge commit, head, number of commits and branch from the mirrors of *cache*.

    A mirror is fetched only for rows without a merge commit or a head. Data missing from its history stays empty: the
    change of a pull request without a merge commit then fails by name.
    """

    def __init__(self, cache: MirrorCache) -> None:
        self._cache = cache

    def complete(self, repository: Repository, rows: Sequence[MergedPullRequest]) -> list[MergedPullRequest]:
        """Return *rows* of *repository* with as many commits filled in as possible; raises ItemFailure."""
        if all(row.merge_commit_sha and row.head_sha for row in rows):
            return list(rows)
        mirror = self._cache.ensure(repository.full_name)
        try:
            heads = read_heads(mirror.path)
            line = read_commits(mirror.path, "--first-parent", revisions=[heads.tip]) if heads.tip else []
            landed_there = landed(mirror.path, repository.full_name, heads, line) if line else {}
        except GitError as error:
            raise translate(error, "read the history of", repository.full_name) from error
        return [_complete(row, landed_there.get(row.number), heads.default_branch) for row in rows]


def _complete(row: MergedPullRequest, landing: Landed | None, branch: str) -> MergedPullRequest:
    if landing is None or row.merge_commit_sha not in ("", landing.commit.sha):
        return row
    head = (landing.head_sha or "") if landing.head_known else ""
    return row.model_copy(
        update={
            "merge_commit_sha": landing.commit.sha,
            "head_sha": row.head_sha or head,
            "base_ref": row.base_ref or branch,
            "commit_count": row.commit_count or (landing.commit_count if head else 0),
        }
    )
