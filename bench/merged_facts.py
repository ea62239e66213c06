"""Merged pull requests of a mirror, from its history alone."""

from __future__ import annotations

import zlib
from pathlib import Path

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.sources.offline.side_file import RepositoryFacts
from sandbox.github.tracker import read_tracker


def merged_facts(repositories: Path, name: str, number: int | None = None) -> list[MergedPullRequest]:
    """The merged pull requests of the repository *name*; with *number* only that one, if it was merged."""
    tracker = read_tracker(repositories / f"{name}.git", name, zlib.crc32(name.encode()), RepositoryFacts())
    return [
        MergedPullRequest(
            month=Month.of(found.merged_at).key,
            repository_id=found.repository_id,
            repository=name,
            number=found.number,
            title=found.title,
            body=found.body,
            created_at=found.created_at,
            merged_at=found.merged_at,
            base_ref=found.base_ref,
            head_sha=found.head_sha,
            merge_commit_sha=found.merge_sha,
            commit_count=found.commit_count,
        )
        for found in tracker.pull_requests.values()
        if number in (None, found.number) and found.merged_at is not None and found.merge_sha is not None
    ]
