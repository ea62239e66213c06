from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from tests import records
from tests.records import make_merged

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
        merged = make_merged(
            repository="acme/wheels",
            number=number,
            title=title,
            body=body,
            author="wile-e",
            merged_at=datetime(2026, 2, 3, tzinfo=UTC),
            **facts,
        )
        return records.make_pull_request(
            merged,
            patch_bytes=patch_bytes,
            files=tuple(ChangedFile(path=path, status="M", additions=1) for path in files),
        )

    return make
