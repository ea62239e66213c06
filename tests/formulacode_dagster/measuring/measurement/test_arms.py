"""The arms of a task: what is there when each is built, and afterwards."""

from __future__ import annotations

import random
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import KeptBuild
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.measurement.arms import Arms
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.patch import changed_files
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm

FILES = {"pkg/core.py": "slow = 1\n", "pkg/setup.c": "", "tests/test_a.py": "before\n", "benchmarks/bench.py": ""}
SUITE = SuiteFiles("8 of its own tests", {"benchmarks/own_tests.py": b"", "tests/test_a.py": b"after\n"})
FAST = "fast = 1\n"
FASTER_C = {"pkg/setup.c": "int fast;\n"}
LAID, CLEAN = ("after\n", True), ("before\n", False)


def state(repository):
    """The checkout's part of the suite."""
    return (repository / "tests/test_a.py").read_text(), (repository / "benchmarks/own_tests.py").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "after",
    [{"pkg/core.py": FAST}, FASTER_C],
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

    monkeypatch.setattr(HarnessClient, "linkers", lambda _, **__: "")
    monkeypatch.setattr(HarnessClient, "keep_build", lambda _: KeptBuild())
    with Arms.open(engine_of(source, build), image, run_id="run", limits=ResourceLimits(), log=Log(None)) as arms:
        arms.prepare(changed_files(patch), patch, SUITE)
        assert built
        for arm in Arm:
            arms.build_anew(arm, random.Random(1))  # noqa: S311 - spreads layouts
        assert {state(Path(session.repository)) for session in arms.sessions.values()} == {LAID}
    assert set(built) == {CLEAN}


@pytest.mark.slow
def test_a_copy_of_the_built_oracle_has_the_patch_and_nothing_of_the_suite(tmp_path, git_patch, engine_of, image):
    source = tmp_path / "source"
    source.mkdir()
    patch = git_patch(source, FILES, {"pkg/core.py": FAST})
    engine = engine_of(source, lambda _: Completed(0, b"", b"", 0.0))
    with Arms.open(engine, image, run_id="run", limits=ResourceLimits(), log=Log(None)) as arms:
        arms.prepare(changed_files(patch), patch, SUITE, copy_oracle=True)
        (copy,) = arms.as_built.values()
        assert Path(copy.repository, "pkg/core.py").read_text() == FAST
        assert state(Path(copy.repository)) == CLEAN
        assert copy not in arms.sessions.values()
    assert not any(session.folder.exists() for session in engine.sessions)


class Builds:
    """Builds of either side with scripted results, and successful ones after that; records them."""

    def __init__(self, base="", oracle=""):
        self.ends, self.made = {"base": [*base], "oracle": [*oracle]}, []

    def __call__(self, repository):
        side = "base" if (repository / "pkg/setup.c").read_text() == "" else "oracle"
        self.made.append(side)
        sign = self.ends[side].pop(0) if self.ends[side] else "."
        return Completed(0 if sign == "." else 1, b"", b"no compiler", 0.1, timed_out=sign == "T")


@pytest.fixture
def arms_of(tmp_path, git_patch, engine_of, image, monkeypatch):
    """Arms of a patch of C, or what else it is *after*, by *build*, prepared."""
    monkeypatch.setattr(HarnessClient, "linkers", lambda _, **__: "")
    monkeypatch.setattr(HarnessClient, "keep_build", lambda _: KeptBuild())
    (tmp_path / "source").mkdir()

    @contextmanager
    def prepared(build, after=FASTER_C):
        patch = git_patch(tmp_path / "source", FILES, after)
        engine = engine_of(tmp_path / "source", build)
        with Arms.open(engine, image, run_id="run", limits=ResourceLimits(), log=Log(None)) as arms:
            arms.prepare(changed_files(patch), patch, SUITE)
            yield arms

    return prepared


@pytest.mark.parametrize(
    ("builds", "made"),
    [
        (Builds(oracle="F"), ["base", "oracle", "oracle", "base"]),
        (Builds(base="F"), ["base", "base", "oracle", "base"]),
    ],
    ids=["oracle", "base"],
)
def test_a_build_that_fails_once_is_made_once_more(arms_of, builds, made):
    with arms_of(builds) as arms:
        assert builds.made == made
        assert sum("not built" in line for line in arms.log.lines) == 1


def test_an_arm_starts_with_what_the_build_of_the_base_left(arms_of):
    found = []

    def build(repository):
        compiled = repository / "core.o"
        found.append(compiled.exists())
        compiled.touch()
        return Completed(0, b"", b"", 0.1)

    with arms_of(build):
        assert found == [False, True, True]


@pytest.mark.parametrize(
    ("builds", "kind", "made"),
    [
        (Builds(oracle="FF"), "oracle_does_not_build", ["base", "oracle", "oracle", "base"]),
        (Builds(oracle="FF", base=".F"), "base_does_not_build", ["base", "oracle", "oracle", "base"]),
        (Builds(base="FF"), "base_does_not_build", ["base", "base"]),
        (Builds(oracle="T"), "timeout", ["base", "oracle"]),
        (Builds(oracle="FT"), "timeout", ["base", "oracle", "oracle"]),
    ],
    ids=["the oracle", "the oracle, and the base beside it", "the base", "too long", "too long again"],
)
def test_a_patch_is_blamed_for_repeated_failures_if_the_base_builds(arms_of, builds, kind, made):
    with pytest.raises(ItemFailure) as failure, arms_of(builds):
        pass
    assert (failure.value.kind, builds.made) == (kind, made)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "kind", "made"),
    [
        ({"oracle": "F"}, None, ["oracle", "oracle"]),
        ({"oracle": "FF"}, "oracle_does_not_build", ["oracle", "oracle", "base"]),
        ({"oracle": "FF", "base": "F"}, "base_does_not_build", ["oracle", "oracle", "base"]),
    ],
    ids=["once", "the oracle", "the base beside it"],
)
def test_so_it_is_with_a_build_of_a_layout_of_its_own(arms_of, ends, kind, made):
    builds = Builds()
    with arms_of(builds) as arms:
        builds.ends |= {side: [*signs] for side, signs in ends.items()}
        builds.made.clear()
        expected = pytest.raises(ItemFailure) if kind else nullcontext()
        with expected as failure:
            arms.build_anew(Arm.ORACLE, random.Random(1))  # noqa: S311 - spreads layouts
    assert builds.made == made
    assert kind is None or failure.value.kind == kind
