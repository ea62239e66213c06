from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.verification import collecting
from formulacode_dagster.building.verification.collecting import Blame, Collected, blame
from formulacode_dagster.building.verification.collector import collector_for
from tests.support.images import Sample, make_spec

TOPS = frozenset({"fast"})
ENDED = Completed(0, b"", b"", 1.0)
MISSING = """ImportError while importing test module '/workspace/repo/tests/test_a.py'.
Traceback:
tests/test_a.py:3: in <module>
    import hypothesis
E   ModuleNotFoundError: No module named 'hypothesis'
"""
IN_PACKAGE = """tests/test_b.py:1: in <module>
    import fast.io
/opt/venv/lib/python3.11/site-packages/fast/io.py:7: in <module>
    DTYPE = np.bool
E   AttributeError: module 'numpy' has no attribute 'bool'.
"""
OPTIONAL = IN_PACKAGE.replace(
    "AttributeError: module 'numpy' has no attribute 'bool'.", "ImportError: please install dask"
)
GONE = """tests/test_c.py:1: in <module>
    from fast import faster
E   ImportError: cannot import name 'faster' from 'fast' (/opt/venv/lib/python3.11/site-packages/fast/__init__.py)
"""
BY_ITSELF = """fast/tests/test_d.py:9: in <module>
    pytest.config.getoption("x")
E   AttributeError: module 'pytest' has no attribute 'config'
"""
PLUGIN = """Traceback (most recent call last):
  File "/workspace/repo/src/fast/_testing.py", line 3, in <module>
    import drawing
  File "/opt/venv/lib/python3.11/site-packages/drawing/fonts.py", line 12, in <module>
    raise ImportError('fontconfig not found')
ImportError: fontconfig not found
"""
LIBRARY = PLUGIN.replace("'fontconfig not found'", "name").replace(
    "fontconfig not found", "libX11.so.6: cannot open shared object file: No such file or directory"
)
SOURCES = IN_PACKAGE.replace("/opt/venv/lib/python3.11/site-packages/fast/io.py", "src/fast/io.py")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MISSING, Blame.MISSING),
        (MISSING.replace("hypothesis", "fast._built"), Blame.PACKAGE),
        (IN_PACKAGE, Blame.PACKAGE),
        (SOURCES, Blame.PACKAGE),
        (OPTIONAL, Blame.MISSING),
        (GONE, Blame.PACKAGE),
        (GONE.replace("from 'fast'", "from 'hypothesis'"), Blame.MISSING),
        (BY_ITSELF, Blame.TESTS),
        (PLUGIN, Blame.MISSING),
        (PLUGIN.replace("site-packages/drawing", "site-packages/fast").replace("Import", "OS"), Blame.PACKAGE),
        (LIBRARY, Blame.LIBRARY),
        ("NameError: name 'x' is not defined", Blame.TESTS),
    ],
)
def test_a_report_tells_who_is_to_blame(text: str, expected: Blame) -> None:
    assert blame(text, TOPS, ["fast"]) is expected


def judged(**facts: object) -> tuple[bool, str]:
    fields: dict[str, object] = {"completed": ENDED, "tests": 0, "pytest": "8.3.5", **facts}
    verdict = collecting.tests_collect(Collected(**fields), TOPS, ["fast"])  # type: ignore[arg-type]
    return verdict.ok, verdict.detail


def test_a_repository_without_tests_passes_and_says_so() -> None:
    verdict = collecting.tests_collect(None, TOPS, [])
    assert (verdict.ok, verdict.detail) == (True, "no tests")


def test_modules_that_are_not_collected_are_named_beside_those_that_are() -> None:
    ok, detail = judged(tests=7, modules=2, failed={"tests/test_a.py": MISSING, "tests/test_b.py": IN_PACKAGE})
    assert ok
    assert "7 tests in 2 modules" in detail
    assert "lacks a module: tests/test_a.py: ModuleNotFoundError: No module named 'hypothesis'" in detail
    assert "fails in the package: tests/test_b.py: AttributeError: module 'numpy' has no attribute 'bool'" in detail


def test_a_dependency_that_only_tests_need_loses_no_task() -> None:
    assert judged(failed={"tests/test_a.py": MISSING})[0]
    assert judged(skipped=3)[0]


def test_errors_of_the_package_that_keep_more_out_than_in_fail() -> None:
    assert not judged(tests=1, modules=1, failed={"a": IN_PACKAGE, "b": GONE})[0]
    assert not judged(failed={"a": IN_PACKAGE, "b": MISSING})[0]


def test_libraries_of_the_system_that_keep_more_out_than_in_fail() -> None:
    assert judged(tests=2, modules=2, failed={"a": LIBRARY, "b": LIBRARY})[0]
    assert not judged(tests=1, modules=1, failed={"a": LIBRARY, "b": LIBRARY})[0]


def test_nothing_collected_without_a_reason_fails() -> None:
    assert not judged()[0]
    assert not judged(failed={"a": BY_ITSELF})[0]


def test_collecting_that_was_killed_or_died_fails() -> None:
    """Failure 39: a timeout is no pass, however much was collected before."""
    ok, detail = judged(completed=Completed(-9, b"", b"", 600.0, timed_out=True), tests=None, modules=40)
    assert not ok
    assert detail == "collecting timed out after 600 s, after 40 modules"
    assert "ended with status 139" in judged(completed=Completed(139, b"", b"", 3.0), tests=None)[1]


def test_files_are_tests_by_their_names_and_benchmarks_are_none(pure: Sample, lock: str) -> None:
    spec = make_spec(pure, lock, package_root="python")
    paths = ["python/tests/test_a.py", "python/a_test.py", "python/testing.py", "test_top.py", "python/benchmarks/x.py"]
    assert collecting.test_files(paths, spec) == ("python/tests/test_a.py", "python/a_test.py")
    spec = make_spec(pure, lock, benchmark_dir="bench/")
    assert collecting.test_files(["bench/test_a.py", "tests.py"], spec) == ("tests.py",)


def test_the_collector_is_of_the_era_of_the_tests() -> None:
    old, new = datetime(2018, 5, 1, tzinfo=UTC), datetime(2021, 5, 1, tzinfo=UTC)
    assert collector_for("3.7", old) == "pytest-4"
    assert collector_for("3.7", new) == collector_for("3.12", old) == "pytest-7"
    assert collector_for("3.13", new) == collector_for("3.14", None) == "pytest-8"
