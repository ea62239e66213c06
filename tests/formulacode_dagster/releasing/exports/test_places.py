"""When an arm of the grader has the suite, and where."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from formulacode_dagster.releasing.exports.grader import places
from formulacode_dagster.releasing.exports.grader.places import Place, install
from formulacode_dagster.releasing.exports.grader.running import Done

SUITE = {"benchmarks/own_tests.py": "suite", "tests/test_a.py": "after", "tests/new/test_b.py": "new"}
TASK = {
    "benchmark_dir": "benchmarks/",
    "limits": {"build_seconds": 10},
    "suite_files": {path: base64.b64encode(text.encode()).decode() for path, text in SUITE.items()},
}
FILES = {"pkg/core.py": "slow", "tests/test_a.py": "before", "benchmarks/bench.py": "own"}


@pytest.fixture
def place(tmp_path, lay, monkeypatch):
    monkeypatch.setattr(places, "GRADED", str(tmp_path / "graded"))
    for name in ("open_to", "close"):
        monkeypatch.setattr(Place, name, lambda *_: None)
    place = Place("base")
    lay(Path(place.repository), FILES)
    return place


def files_of(place):
    root = Path(place.repository)
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_an_arm_is_built_without_the_suite_each_time_and_has_it_afterwards(place, monkeypatch):
    built = []

    def build(self, argv, **_):
        built.append(files_of(self))
        return Done(0, b"", [], b"", 0.0, False)

    monkeypatch.setattr(Place, "run", build)
    for _ in range(2):
        install(place, TASK)
        assert files_of(place) == {"pkg/core.py": "slow", **SUITE}
    assert built == [FILES, FILES]


def test_a_build_leads_no_file_of_the_suite_out_of_its_arm(place, tmp_path, lay, monkeypatch):
    """The build runs the agent's code: it may put a link in the suite's place."""
    others = lay(tmp_path / "others", {"test_a.py": "of another arm"})

    def build(self, argv, **_):
        for folder in ("tests", "benchmarks"):
            path = Path(self.repository, folder)
            path.rename(f"{path}.old")
            path.symlink_to(others)
        return Done(0, b"", [], b"", 0.0, False)

    monkeypatch.setattr(Place, "run", build)
    install(place, TASK)
    assert [path.name for path in others.iterdir()] == ["test_a.py"]
    assert (others / "test_a.py").read_text() == "of another arm"
    assert {path: files_of(place)[path] for path in SUITE} == SUITE


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("pkg/core.py", True),
        ("pkg/testing/compare.py", True),
        ("pkg/testing/plugin.py", False),
        ("pkg/testing/test_compare.py", False),
        ("testing/test_all.py", False),
        ("pkg/tests/helpers.py", False),
        ("setup.cfg", False),
    ],
)
def test_an_agent_may_change_test_helpers_only_as_the_author_did(path, counts):
    authors = frozenset({"pkg/testing/compare.py", "pkg/testing/test_compare.py", "testing/test_all.py"})
    assert places._counts(path, "benchmarks/", authors) is counts
