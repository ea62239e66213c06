"""The builder's cache, by the answers of different versions of Docker's API."""

from __future__ import annotations

import time
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


def record(name: str, *parents: str, day: int = 1, size: int = 1, free: bool = True, kind: str = "regular") -> Any:
    return STEP | {
        "ID": name,
        "Type": kind,
        "Parents": list(parents),
        "Size": size,
        "LastUsedAt": f"2026-02-{day:02}T00:00:00Z",
        "InUse": not free,
    }


class Builder:
    """A builder with *records*, which removes those that are not *stuck*; `asked` is the order."""

    base_url, api_version = "http://docker", "1.45"

    def __init__(self, *records: Any, stuck: tuple[str, ...] = ()) -> None:
        self._records, self._stuck = records, stuck
        self.asked: list[str] = []

    def get(self, _address: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(raise_for_status=lambda: None, json=lambda: {"BuildCache": self._records})

    def prune_builds(self, *, filters: dict[str, str], all: bool) -> dict[str, list[str] | None]:
        assert all
        self.asked.append(filters["id"])
        return {"CachesDeleted": None if filters["id"] in self._stuck else [filters["id"]]}


def trim(builder: Any, budget: int | None, *, dry_run: bool = False) -> tuple[int, int]:
    trimmed = BuildCache(builder).trim(budget, dry_run=dry_run)
    return trimmed.records, trimmed.bytes_after


def test_records_go_after_those_that_build_on_them_least_recently_used_first() -> None:
    tree = [
        record("base", day=1),
        record("old", "base", day=5),
        record("new", "base", day=9),
        record("top", "new", day=2),
    ]
    builder = Builder(*tree, record("used", "base", day=1, free=False), record("alone", day=3))
    assert trim(builder, 0, dry_run=True) == (4, 1)
    assert trim(builder, 0) == (4, 1)
    assert builder.asked == ["top", "alone", "old", "new"], "a record in use keeps the base"
    assert trim(builder := Builder(*tree), 2) == (2, 2)
    assert builder.asked == ["top", "old"]
    assert trim(builder := Builder(*tree), 0) == (4, 0)
    assert builder.asked == ["top", "old", "new", "base"]


def test_a_record_that_cannot_be_removed_counts_as_kept_and_keeps_those_below() -> None:
    builder = Builder(record("base"), record("stuck", "base", size=7), record("free", size=3), stuck=("stuck",))
    assert trim(builder, 0) == (1, 8)
    assert builder.asked == ["free", "stuck"]


def test_old_cache_mounts_go_first_whatever_the_budget() -> None:
    builder = Builder(record("mount", kind="exec.cachemount", day=9), record("step", day=1))
    assert trim(builder, None) == (1, 1)
    assert builder.asked == ["mount"]


def test_a_cache_of_many_records_is_trimmed_at_once() -> None:
    builder = Builder(*(record(str(number), str(number - 1)) for number in range(20_000)))
    started = time.process_time()
    assert trim(builder, 0) == (20_000, 0)
    assert time.process_time() - started < 5


def test_a_builder_without_records_has_nothing_to_remove() -> None:
    answer = {"BuildCache": None}
    given = SimpleNamespace(raise_for_status=lambda: None, json=lambda: answer)
    api: Any = SimpleNamespace(base_url="http://docker", api_version="1.45", get=lambda *_, **__: given)
    assert BuildCache(api).trim(0, dry_run=True).records == 0
