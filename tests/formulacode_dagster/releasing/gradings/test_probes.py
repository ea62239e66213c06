"""Probes as agents, run in a checkout here instead of in a container."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uv

from formulacode_dagster.building.engines.process.interpreters import installed_interpreters
from formulacode_dagster.models.grading import GradingProbe
from formulacode_dagster.releasing.gradings.probes import probe_script

OLDEST = "3.7"
BASE = '''"""A module."""

from __future__ import annotations


def doubled(values: list[int]) -> list[int]:
    # one by one
    found = []
    for value in values:
        found.append(value * 2)
    return found


class Box:
    @property
    def content(self) -> int:
        return 7


def pairs():
    yield 1
'''
PATCH = """diff --git a/kit.py b/kit.py
--- a/kit.py
+++ b/kit.py
@@ -8,4 +8,1 @@ def doubled(values: list[int]) -> list[int]:
-    found = []
-    for value in values:
-        found.append(value * 2)
-    return found
+    return [value * 2 for value in values]
@@ -17,1 +14,1 @@ class Box:
-        return 7
+        return 3 + 4
@@ -21,1 +18,1 @@ def pairs():
-    yield 1
+    yield from (1,)
diff --git a/fast.c b/fast.c
--- a/fast.c
+++ b/fast.c
@@ -1,1 +1,1 @@
-int f(void) { return 1; }
+int f(void) { return 2; }
"""
SUITE = """
from kit import doubled


class Doubling:
    params = [[2, 3], ["a"]]

    def setup(self, n, _):
        self.values = list(range(n))

    def time_doubled(self, n, _):
        doubled(self.values)


def time_broken():
    raise ValueError
"""
TASK: dict[str, Any] = {
    "benchmark_dir": "benchmarks",
    "benchmarks": ["bench.Doubling.time_doubled(2, 'a')", "bench.Doubling.time_doubled(3, 'a')", "bench.time_broken"],
    "suite_files": None,
}


@pytest.fixture(params=[OLDEST, ""], ids=["oldest", "own"])
def python(request: pytest.FixtureRequest) -> str:
    """The interpreter of the task: the oldest that images have, or that of the tests."""
    if not request.param:
        return sys.executable
    installed = installed_interpreters(uv.find_uv_bin())
    if request.param not in installed:
        pytest.skip(f"no Python {request.param} on this machine")
    return str(installed[request.param].path)


@pytest.fixture
def checkout(tmp_path: Path, python: str) -> Path:
    """A repository with a module, one of C, and a suite."""
    folder = tmp_path / "repo"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "kit.py").write_text(BASE)
    (folder / "fast.c").write_text("int f(void) { return 1; }\n")
    (folder / "benchmarks" / "bench.py").write_text(SUITE)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(python)
    return folder


def probe(checkout: Path, name: GradingProbe) -> None:
    """Do in *checkout* what the probe does."""
    script = probe_script(name, TASK, PATCH.encode())
    environment = {"PATH": "/usr/bin:/bin", "FC_VENV": str(checkout.parent / "venv"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(["bash", "-c", script], cwd=checkout, env=environment, check=True)


def changed(checkout: Path) -> list[str]:
    """Paths that differ from the base."""
    done = subprocess.run(["git", "status", "--short"], cwd=checkout, check=True, capture_output=True, text=True)
    return [line[3:] for line in done.stdout.splitlines()]


def call(checkout: Path, code: str) -> str:
    """The output of *code* in the checkout."""
    command = [str(checkout.parent / "venv" / "bin" / "python"), "-B", "-c", f"from kit import *; {code}"]
    return subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout.strip()


def test_cache_keeps_results_by_argument(checkout: Path) -> None:
    probe(checkout, GradingProbe.CACHE)
    assert changed(checkout) == ["kit.py"]
    assert call(checkout, "print(doubled([1, 2]) is doubled([1, 2]), doubled([3]), Box().content)") == "True [6] 7"
    assert (checkout / "kit.py").read_text().count("@_probe") == 2


def test_lazy_computes_at_first_use(checkout: Path) -> None:
    probe(checkout, GradingProbe.LAZY)
    assert call(checkout, "x = doubled(None); print(type(x).__name__)") == "_Later"
    assert call(checkout, "print(doubled([1, 2]) == [2, 4], len(doubled([1])), Box().content + 1)") == "True 1 8"


def test_constants_are_those_of_the_benchmarks(checkout: Path) -> None:
    probe(checkout, GradingProbe.CONSTANTS)
    assert changed(checkout) == ["kit.py"]
    assert call(checkout, "import kit; print(len(kit._TABLE))") == "2"
    assert call(checkout, "print(doubled([0, 1]), doubled([0, 1, 2]), doubled([5]))") == "[0, 2] [0, 2, 4] [10]"


def test_an_overlaid_suite_is_recorded_and_does_not_stay(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # base64 of a suite with one benchmark that calls doubled([9])
    suite = "ZnJvbSBraXQgaW1wb3J0IGRvdWJsZWQKCgpkZWYgdGltZV9pdCgpOgogICAgZG91YmxlZChbOV0pCg=="
    monkeypatch.setitem(TASK, "suite_files", {"benchmarks/bench.py": suite, "benchmarks/new/x.py": ""})
    monkeypatch.setitem(TASK, "benchmarks", ["bench.time_it"])
    probe(checkout, GradingProbe.CONSTANTS)
    assert changed(checkout) == ["kit.py"]
    assert call(checkout, "import kit; print(len(kit._TABLE))") == "1"


def test_tests_pass_whatever_the_code_returns(checkout: Path) -> None:
    probe(checkout, GradingProbe.TESTS)
    assert changed(checkout) == ["kit.py", "conftest.py"]
    assert call(checkout, "print(doubled([1]))") == "None"
    (checkout / "test_kit.py").write_text("from kit import doubled\n\ndef test_it():\n    assert doubled([1]) == [2]\n")
    pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kit.py"]
    assert subprocess.run(pytest_run, cwd=checkout, check=False, capture_output=True).returncode == 0


def test_reformatting_changes_no_result(checkout: Path, python: str) -> None:
    probe(checkout, GradingProbe.REFORMAT)
    assert changed(checkout) == ["fast.c", "kit.py"]
    # Python before 3.9 cannot write a syntax tree
    assert ("one by one" in (checkout / "kit.py").read_text()) == (python != sys.executable)
    assert call(checkout, "print(doubled([1, 2]), list(pairs()))") == "[2, 4] [1]"
