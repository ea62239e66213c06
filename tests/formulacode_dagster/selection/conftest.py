from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.pull_request import Change, ChangedFile, MergedPullRequest, MergeKind, PullRequest

MakePullRequest = Callable[..., PullRequest]


@pytest.fixture
def make_pull_request() -> MakePullRequest:
    def make(
        title: str = "Faster merge",
        body: str = "",
        files: Sequence[str] = ("pkg/core.py",),
        patch_bytes: int = 1000,
        number: int = 7,
        **facts: object,
    ) -> PullRequest:
        return PullRequest(
            facts=MergedPullRequest.model_validate(
                {
                    "month": "2026-02",
                    "repository_id": 1,
                    "repository": "acme/wheels",
                    "number": number,
                    "title": title,
                    "body": body,
                    "author": "wile-e",
                    "created_at": datetime(2026, 2, 1, tzinfo=UTC),
                    "merged_at": datetime(2026, 2, 3, tzinfo=UTC),
                    "base_ref": "main",
                    "head_sha": "a" * 40,
                    "merge_commit_sha": "b" * 40,
                    **facts,
                }
            ),
            change=Change(
                month="2026-02",
                repository_id=1,
                number=number,
                merge_kind=MergeKind.SQUASH,
                base_sha="c" * 40,
                merge_tree_sha="d" * 40,
                patch_sha256="e" * 64,
                patch_bytes=patch_bytes,
                files=tuple(ChangedFile(path=path, status="M", additions=1) for path in files),
            ),
        )

    return make
