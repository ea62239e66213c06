"""Right patches of real tasks, and what is said of their grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import grader_real
from formulacode_dagster.measuring.measurement.patch import changed_files


@pytest.mark.parametrize("file", sorted(grader_real.PATCHES.rglob("*.patch")), ids=lambda file: file.stem)
def test_a_patch_changes_sources_only(file: Path) -> None:
    paths = [change.path for change in changed_files(file.read_bytes())]
    assert paths
    assert all(path.endswith(".py") and "test" not in path and "bench" not in path for path in paths)


def test_tasks_are_found_at_any_depth(tmp_path: Path) -> None:
    patches, tasks = tmp_path / "patches", tmp_path / "tasks"
    (patches / "a__b-1").mkdir(parents=True)
    for name in ("a__b-1", "a__b-2"):
        folder = tasks / "month" / name
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "task.json").write_text(json.dumps({"task_id": name}))
    assert grader_real.names_in(patches) == {"a__b-1"}
    assert dict(grader_real.tasks_in(tasks, patches)) == {"a__b-1": tasks / "month" / "a__b-1"}


def test_a_right_patch_without_a_reward_is_a_false_reject() -> None:
    def grade(patch: str, reward: float) -> grader_real.RealGrade:
        return grader_real.RealGrade(
            task="a__b-1",
            patch=patch,
            reward=reward,
            speedup=1.0,
            reason="unchanged",
            detail="",
            seconds=1.0,
            cpu_seconds=1.0,
        )

    report = grader_real.figures([grade("oracle", 1.0), grade("other", 0.4), grade("third", 0.0)])
    assert (report["tasks"], report["patches"]) == (1, 2)
    assert report["false_rejects"] == ["a__b-1 third: unchanged"]
    assert report["author_rewards"] == {"a__b-1": 1.0}
