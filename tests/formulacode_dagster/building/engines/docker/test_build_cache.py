"""The builder's cache, by the answers of different versions of Docker's API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.building.engines.docker.build_cache import BuildCache
from formulacode_dagster.building.engines.docker.session import TOOLS

STEP = {
    "ID": "step",
    "Type": "regular",
    "Description": f"mount / from exec {TOOLS}/bin/install",
    "Size": 7,
    "CreatedAt": "2026-01-01T00:00:00Z",
    "LastUsedAt": "2026-01-02T00:00:00Z",
    "InUse": False,
    "Shared": False,
}


@pytest.mark.parametrize(
    "answer", [{"BuildCache": [STEP]}, {"BuildCacheUsage": {"Items": [STEP]}}], ids=["until 1.51", "from 1.52"]
)
def test_records_are_found_in_answers_of_each_version(answer: dict[str, Any]) -> None:
    def get(_address: str, *, params: dict[str, str], timeout: float) -> SimpleNamespace:
        assert params["verbose"], "without it newer versions count the records, and do not name them"
        return SimpleNamespace(raise_for_status=lambda: None, json=lambda: answer)

    api: Any = SimpleNamespace(base_url="http://docker", api_version="1.53", get=get)
    trimmed = BuildCache(api).trim(0, dry_run=True)
    assert (trimmed.records, trimmed.freed) == (1, 7)


def test_a_builder_without_records_has_nothing_to_remove() -> None:
    answer = {"BuildCache": None}
    given = SimpleNamespace(raise_for_status=lambda: None, json=lambda: answer)
    api: Any = SimpleNamespace(base_url="http://docker", api_version="1.45", get=lambda *_, **__: given)
    assert BuildCache(api).trim(0, dry_run=True).records == 0
