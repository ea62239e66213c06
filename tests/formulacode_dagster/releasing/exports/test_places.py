"""When an arm of the grader has the suite, and where."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from formulacode_dagster.releasing.exports.grader import places
from formulacode_dagster.releasing.exports.grader.places import ArmFailedError, Place, draw_first_user, install
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


def test_builds_write_to_the_environment_alone_and_leave_nothing_open(tmp_path, lay, monkeypatch):
    monkeypatch.setattr(places, "GRADED", str(tmp_path / "graded"))
    place = Place("agent")
    venv, repository = Path(place.venv), lay(Path(place.repository), {"tests/test_a.py": ""})
    lay(venv, {"pkg/cache.json": "{}"})
    place.open_to(place.builder)
    assert [path.stat().st_uid for path in (venv / "pkg", repository, repository / "tests")] == [place.builder, 0, 0]
    (venv / "pkg/cache.json").chmod(0o4666)
    os.mkfifo(venv / "pkg/pipe")
    place.close()
    assert [path.name for path in (venv / "pkg").iterdir()] == ["cache.json"]
    assert not (venv / "pkg/cache.json").stat().st_mode & 0o22


def test_no_timed_process_reaches_what_builds_left(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "GRADED", str(tmp_path / "graded"))
    place = Place("agent")
    locked = Path(place.builder_home).parent
    modes = []
    monkeypatch.setattr(places, "run", lambda *_, **__: modes.append(locked.stat().st_mode & 0o777))
    for build in (True, False, True):
        place.run(["true"], timeout=1, environment={}, build=build)
    assert (modes, locked.stat().st_uid) == ([0o711, 0o700, 0o711], 0)
    assert "directory = *" in Path(place.builder_home, ".gitconfig").read_text()
    assert list(Path(f"{place.folder}-user").iterdir()) == [], "processes that are timed or test have an empty home"


VERSION = "pkg-1.0+59.g68b209b"


def installed(version, text):
    return {"pkg/core.so": text, f"{version}.dist-info/RECORD": f"{text},,"}


@pytest.mark.parametrize("version", [VERSION, f"{VERSION}.dirty"])
def test_an_agents_build_keeps_its_metadata_whatever_its_version(version, tmp_path, lay, monkeypatch):
    """Versions from git show uncommitted changes, and without a RECORD no object would be linked again."""
    for name in ("GRADED", "SEALED"):
        monkeypatch.setattr(places, name, str(tmp_path / name))
    venvs = [Path(places.SEALED, "venv"), Path(Place("base").venv), Path(Place("agent").venv)]
    library = sysconfig.get_path("purelib", "posix_prefix", {"base": ""}).lstrip("/")
    sealed, base, agent = (venv / library for venv in venvs)
    lay(sealed, {"numpy.py": "numpy", "numpy-2.0.dist-info/RECORD": "numpy.py,,"})
    for venv in venvs[1:]:
        venv.parent.mkdir(parents=True)
        places._copy(str(venvs[0]), str(venv))
    lay(sealed, installed(VERSION, "sealed"))
    lay(base, installed(VERSION, "base"))
    lay(agent, {"new.py": "", "new.pth": "import new", **installed(version, "agent")})
    places._keep_package_alone(Place("agent"))
    assert {path.relative_to(agent).as_posix(): path.read_text() for path in agent.rglob("*") if path.is_file()} == {
        "numpy.py": "numpy",
        "numpy-2.0.dist-info/RECORD": "numpy.py,,",
        **installed(version, "agent"),
    }


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


@pytest.mark.parametrize(
    ("path", "is_left_out"),
    [("pkg/tests.py", True), ("pkg/checks.py", True), ("own/pkg/checks.py", False), ("pkg/more.py", False)],
)
def test_a_file_with_listed_tests_is_no_source(path, is_left_out, tmp_path, lay, monkeypatch):
    """Wherever a package keeps them: it could gut the tests that judge it."""
    lay(tmp_path / "sealed/repo", {path: "def test_a(): assert slow() == 1"})
    lay(tmp_path / "agents", {path: "def test_a(): pass"})
    monkeypatch.setattr(places, "SEALED", str(tmp_path / "sealed"))
    monkeypatch.setenv("FC_REPOSITORY", str(tmp_path / "agents"))
    names = ["checks.py::test_a", "../pkg/checks.py::TestA::test_b[a::b]"]
    task = {"benchmark_dir": "benchmarks/", "patched_paths": ["pkg/checks.py"], "package_root": "pkg"}
    changes, left_out = places.changes_of({**task, "pass_to_pass": names})
    assert (left_out, [*changes]) == (([path], []) if is_left_out else ([], [path]))


@pytest.mark.parametrize(
    ("mapped", "last"),
    [
        ("         0          0 4294967295\n", 2**30),
        ("0 1000 1\n1 100000 65536\n", 65_537),
        ("0 1000 1\n", 20_008),
    ],
)
def test_users_of_a_grading_are_drawn_from_all_that_are_mapped(mapped, last):
    drawn = [draw_first_user(mapped) for _ in range(400)]
    assert 20_000 <= min(drawn) <= max(drawn) <= last - 8
    # two gradings at once have none in common
    assert all((number - 20_000) % 8 == 0 for number in drawn)
    assert len(set(drawn)) > 390 or last < 2**30


@pytest.fixture
def checkout(tmp_path, lay, monkeypatch):
    """A checkout of `FILES`, into which git applies changes as whoever runs the tests."""

    def run(argv, *, cwd, environment, stdin, timeout, **_):
        done = subprocess.run(
            argv, cwd=cwd, env=environment, input=stdin, timeout=timeout, capture_output=True, check=False
        )
        return Done(done.returncode, done.stdout, [], done.stderr, 0.0, False)

    monkeypatch.setattr(places, "run", run)
    monkeypatch.setenv("FC_REPOSITORY", str(tmp_path / "checkout"))
    return lay(tmp_path / "checkout", FILES)


FASTER = b"--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-slow\n\\ No newline at end of file\n+fast\n"


@pytest.mark.parametrize(("diff", "core"), [(FASTER, "fast\n"), (b"", "slow")])
def test_changes_of_an_agent_in_another_container_are_applied(checkout, tmp_path, diff, core):
    (tmp_path / "agent.diff").write_bytes(diff)
    places.lay_diff(str(tmp_path / "agent.diff"))
    assert (checkout / "pkg/core.py").read_text() == core


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        (None, "no changes"),
        (b"no patch", "do not apply"),
        (FASTER.replace(b"-slow", b"-other"), "do not apply"),
        (FASTER.replace(b"b/pkg/core.py", b"b/../core.py").replace(b"a/pkg/core.py", b"a/../core.py"), "do not apply"),
        (b"x" * 100, "more than 99 bytes"),
    ],
)
def test_changes_that_cannot_be_applied_are_refused_and_change_nothing(checkout, tmp_path, monkeypatch, diff, why):
    (tmp_path / "core.py").write_text("slow")
    if why.startswith("more"):
        monkeypatch.setattr(places, "MOST_DIFF_BYTES", 99)
    if diff is not None:
        (tmp_path / "agent.diff").write_bytes(diff)
    with pytest.raises(ArmFailedError, match=why):
        places.lay_diff(str(tmp_path / "agent.diff"))
    assert (tmp_path / "core.py").read_text() == (checkout / "pkg/core.py").read_text() == "slow"


def test_a_link_to_changes_is_not_followed(checkout, tmp_path):
    (tmp_path / "secret").write_bytes(FASTER)
    (tmp_path / "agent.diff").symlink_to(tmp_path / "secret")
    with pytest.raises(ArmFailedError):
        places.lay_diff(str(tmp_path / "agent.diff"))
    assert (checkout / "pkg/core.py").read_text() == "slow"


MADE_TO_FAIL = {
    "tests/__init__.py": "",
    "tests/test_all.py": """import unittest
import pytest
from tests.shared import Shared, test_shared

@pytest.fixture(params=["a::b", "c"])
def value(request):
    return request.param

@pytest.mark.parametrize("n", [1, 2])
def test_cases(n, value): assert n

class TestA:
    class TestInner:
        def test_inner(self, value): assert value
    @staticmethod
    def test_static(): pass
    @classmethod
    def test_of_class(cls, value): assert value
    def test_other(self): pass

class TestB(Shared): pass

class TestC(unittest.TestCase):
    def test_case(self): self.assertTrue(True)
    def test_other(self): pass""",
    "tests/shared.py": "class Shared:\n    def test_inherited(self): pass\n\ndef test_shared(): pass\n",
}
SABOTAGED = [
    "test_cases[c-2]",
    "test_shared",
    "TestA::TestInner::test_inner[a::b]",
    "TestA::test_static",
    "TestA::()::test_of_class[c]",
    "TestB::test_inherited",
    "TestC::test_case",
    # not by these names
    "TestA::test_gone",
    "gone.doctest",
    "not a name",
]


def test_tests_of_all_kinds_are_made_to_fail_in_the_copy_only(place, lay, monkeypatch):
    monkeypatch.setattr(places.os, "chown", lambda *_, **__: None)
    lay(Path(place.repository, "own"), MADE_TO_FAIL)
    before = files_of(place)
    folder = places.for_tests(place, [f"own/tests/test_all.py::{name}" for name in SABOTAGED])
    assert files_of(place) == before
    command = [sys.executable, "-m", "pytest", "-qrA", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=."]
    said = subprocess.run([*command, "tests"], cwd=f"{folder}/own", capture_output=True, text=True, check=False).stdout
    outcomes = {line.split()[1].partition("::")[2]: line.split()[0] for line in said.splitlines() if "::test" in line}
    passed = {"TestA::test_other", "TestC::test_other"}
    assert {name for name, outcome in outcomes.items() if outcome == "PASSED"} == passed, said
    assert {name.partition("[")[0].rpartition("::")[2] for name in outcomes.keys() - passed} == {
        *("test_cases", "test_shared", "test_inner", "test_static", "test_of_class", "test_inherited", "test_case"),
    }


def test_a_copy_in_which_tests_nested_folders_too_deeply_is_removed(place, lay, monkeypatch):
    monkeypatch.setattr(places.os, "chown", lambda *_, **__: None)
    lay(Path(place.repository), FILES)
    subprocess.run(["mkdir", "-p", f"{places.for_tests(place)}/{'a/' * 1100}"], check=True)
    try:
        folder = Path(places.for_tests(place))
        assert {path.name for path in folder.iterdir()} == {path.partition("/")[0] for path in FILES}
    finally:
        # neither can pytest
        subprocess.run(["rm", "-rf", f"{place.folder}-tests"], check=True)


def test_a_file_of_tests_outside_of_the_copy_is_left_alone(place, lay, tmp_path, monkeypatch):
    """The build may have left a link there."""
    monkeypatch.setattr(places.os, "chown", lambda *_, **__: None)
    others = lay(tmp_path / "others", {"test_a.py": "def test_a(): pass"})
    Path(place.repository, "linked").symlink_to(others)
    names = ["linked/test_a.py::test_a", "../others/test_a.py::test_a", "gone/test_a.py::test_a"]
    places.for_tests(place, names)
    assert (others / "test_a.py").read_text() == "def test_a(): pass"
