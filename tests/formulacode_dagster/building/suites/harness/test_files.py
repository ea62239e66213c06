"""Suites overlaid on a checkout, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import HarnessClient

FILES = {"pkg/__init__.py": "", "tests/test_core.py": "before\n", "benchmarks/bench.py": "own\n"}


@pytest.fixture
def remote(session, lay):
    lay(Path(session.repository), FILES)
    return HarnessClient(session, benchmark_dir="benchmarks")


def files_of(session):
    """All that the checkout of *session* holds."""
    root = Path(session.repository)
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


LAID = {"benchmarks/own_tests.py": b"", "tests/test_core.py": b"after\n", "tests/new/test_new.py": b"new\n"}


def test_of_a_suite_that_was_laid_nothing_is_left_when_another_is(session, remote):
    remote.write(LAID)
    assert {path: files_of(session)[path] for path in LAID} == {path: text.decode() for path, text in LAID.items()}
    remote.write({"benchmarks/other.py": b"other\n"})
    laid = {path: text for path, text in files_of(session).items() if not path.startswith(".fc_laid/")}
    assert laid == {"pkg/__init__.py": "", "tests/test_core.py": "before\n", "benchmarks/other.py": "other\n"}
    assert not Path(session.repository, "tests/new").exists()


def test_what_was_there_before_any_suite_is_put_back_by_whoever_asks(session, remote):
    remote.write(LAID)
    remote.write({"benchmarks/bench.py": b"other\n", "pkg/test_pkg.py": b""})
    # of a copy of the session, say
    HarnessClient(session, benchmark_dir="benchmarks").restore()
    assert files_of(session) == FILES
    remote.restore()
    assert files_of(session) == FILES


def test_a_suite_is_out_of_the_way_for_a_while(session, remote):
    remote.write(LAID)
    with remote.restored():
        assert files_of(session) == FILES
    assert files_of(session)["tests/test_core.py"] == "after\n"
