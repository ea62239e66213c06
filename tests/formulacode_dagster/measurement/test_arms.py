"""The arms of a task: what is there when each is built, and afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from formulacode_dagster.engines.protocol import Completed
from formulacode_dagster.measurement.arms import Arms
from formulacode_dagster.measurement.log import Log
from formulacode_dagster.measurement.patch import changed_files
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.suites.overlays import SuiteFiles
from formulacode_dagster.suites.questions import KeptBuild
from formulacode_dagster.suites.remote import Remote

FILES = {"pkg/core.py": "slow = 1\n", "pkg/setup.c": "", "tests/test_a.py": "before\n", "benchmarks/bench.py": ""}
SUITE = SuiteFiles("8 of its own tests", {"benchmarks/own_tests.py": b"", "tests/test_a.py": b"after\n"})
LAID, CLEAN = ("after\n", True), ("before\n", False)


def state(repository):
    """What a checkout has of the suite."""
    return (repository / "tests/test_a.py").read_text(), (repository / "benchmarks/own_tests.py").exists()


@pytest.mark.parametrize(
    "after",
    [{"pkg/core.py": "fast = 1\n"}, {"pkg/setup.c": "int fast;\n"}],
    ids=["the control is a copy", "it is built"],
)
def test_no_arm_has_the_suite_while_it_is_built_nor_when_it_is_built_again(
    after, tmp_path, git_patch, engine_of, image, monkeypatch
):
    source, built = tmp_path / "source", []
    source.mkdir()
    patch = git_patch(source, FILES, after)

    def build(repository):
        built.append(state(repository))
        return Completed(0, b"", b"", 0.0)

    monkeypatch.setattr(Remote, "linkers", lambda _, **__: "")
    monkeypatch.setattr(Remote, "keep_build", lambda _: KeptBuild())
    with Arms.open(engine_of(source, build), image, run_id="run", limits=ResourceLimits(), log=Log(None)) as arms:
        arms.prepare(changed_files(patch), patch, SUITE)
        assert built
        for arm in Arm:
            arms.build_anew(arm, random.Random(1))  # noqa: S311 - spreads layouts
        assert {state(Path(session.repository)) for session in arms.sessions.values()} == {LAID}
    assert set(built) == {CLEAN}
