from __future__ import annotations

from pathlib import Path

from formulacode_dagster.measuring.correctness.patch_lines import patch_lines

BEFORE = {
    "pkg/core.py": "def total(a):\n    x = 1\n    return x\n\n\ndef kept():\n    pass\n",
    "pkg/_fast.pyx": "cdef int x\n",
    "pkg/gone.py": "a = 1\nb = 2\n",
    "README.md": "words\n",
    "tests/test_core.py": "def test_total():\n    pass\n",
    "tests/data.json": "{}\n",
    "bench/bench.py": "def time_total():\n    pass\n",
}
AFTER = {
    "pkg/core.py": "def total(a):\n    return 1\n\n\ndef kept():\n    later = 3\n    pass\n",
    "pkg/_fast.pyx": "cdef long x\n",
    "pkg/gone.py": None,
    "README.md": "other words\n",
    "tests/test_core.py": "def test_total():\n    assert True\n",
    "tests/data.json": None,
    "bench/bench.py": "def time_total():\n    return 1\n",
}


def test_lines_are_told_by_side_and_what_is_of_tests_apart(tmp_path: Path, git_patch) -> None:
    changed = patch_lines(git_patch(tmp_path, BEFORE, AFTER), benchmark_dir="bench")
    assert changed.base == {"pkg/core.py": {2, 3}, "pkg/gone.py": {1, 2}}
    assert (changed.oracle, changed.deletes) == ({"pkg/core.py": {2, 6}}, True)
    assert changed.untraceable == ("pkg/_fast.pyx",)
    assert set(changed.tests) == {"tests/test_core.py", "tests/data.json"}
    assert {"core", "_fast", "later", "return"} <= changed.words
    assert not {"README", "bench", "time_total", "test_total"} & changed.words


def test_of_a_suite_in_the_root_only_what_is_named_for_benchmarks_is_left_out(tmp_path: Path, git_patch) -> None:
    assert patch_lines(git_patch(tmp_path, BEFORE, AFTER), benchmark_dir=".") == patch_lines(
        git_patch(tmp_path, BEFORE, AFTER), benchmark_dir="bench"
    )


def test_what_else_is_known_to_run_compiled_is_untraceable_too(tmp_path: Path, git_patch) -> None:
    hidden = ("pkg/_fast.pyx", "pkg/core.py:total")
    changed = patch_lines(git_patch(tmp_path, BEFORE, AFTER), benchmark_dir="bench", hidden=hidden)
    assert changed.untraceable == ("pkg/_fast.pyx", "pkg/core.py:total")


def test_an_empty_patch_changes_nothing() -> None:
    changed = patch_lines(b"", benchmark_dir="bench")
    assert (changed.base, changed.oracle, changed.tests, changed.untraceable) == ({}, {}, (), ())
