"""The arms of `./replay`, with scripted sessions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.releasing.replays.portable.arms import ARMS, PackedArms
from formulacode_dagster.releasing.replays.portable.harness_requests import PackedHarness
from formulacode_dagster.releasing.replays.portable.sessions import REPOSITORY


def test_both_sides_have_the_same_hash_seeds_in_each_pair_of_calls() -> None:
    calls: list[tuple[str, int]] = []

    def harness(arm: str) -> Any:
        def survey(names: list[str], _seconds: float, *, results: bool, hash_seed: int) -> dict[str, Any]:
            assert results
            calls.append((arm, hash_seed))
            return {name: {"returned": f"{arm} {len(calls)}"} for name in names}

        return SimpleNamespace(survey=survey)

    machine: Any = None
    arms = PackedArms(machine, {"benchmarks": ["a"]}, "", lambda _: None)
    arms.by_name = {arm: harness(arm) for arm in ARMS}
    assert arms.returned(1.0) == {
        "base": {"a": "base 1"},
        "oracle": {"a": "oracle 2"},
        "control": {"a": "control 3"},
        "again": {"a": "oracle 4"},
    }
    (_, first), (_, also_first), (_, second), (_, also_second) = calls
    assert (first, second) == (also_first, also_second)
    assert first != second


@pytest.mark.parametrize(("folder", "root"), [("asv/suite/", f"{REPOSITORY}/asv/suite"), (".", REPOSITORY)])
def test_a_suite_is_imported_by_the_name_of_its_folder(folder: str, root: str) -> None:
    place: Any = None
    task = {"environment": {}, "benchmark_dir": folder, "limits": {"benchmark_seconds": 1}}
    assert PackedHarness(place, task)._where["root"] == root
