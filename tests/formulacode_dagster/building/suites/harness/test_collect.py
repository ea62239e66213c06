from types import SimpleNamespace

import pytest

from formulacode_dagster.building.suites.harness.collect import run_options
from formulacode_dagster.building.suites.harness.files_of_tests import files_of_tests
from formulacode_dagster.building.suites.harness.testing import in_turns


@pytest.mark.parametrize(
    ("version", "filters"), [("3.0.4", False), ("3.1.0", True), ("3.10.1", True), ("8.4.0rc1", True)]
)
def test_a_filter_of_warnings_is_asked_of_no_pytest_that_has_none(version, filters):
    assert ("-W" in run_options(version)) is filters


def test_a_pytest_that_cannot_override_its_configuration_is_not_asked_to():
    assert run_options("2.9.2") == ["-qqq", "--tb=short", "--assert=plain", "-p", "no:cacheprovider"]


def test_of_each_file_some_tests_are_run_before_more_of_any():
    names = ["a.py::1", "a.py::2", "a.py::3", "b.py::1", "b.py::2", "b.py::3"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    assert [item.nodeid for item in in_turns(items, 2)] == [
        "a.py::1",
        "a.py::2",
        "b.py::1",
        "b.py::2",
        "a.py::3",
        "b.py::3",
    ]


def test_a_link_to_a_test_that_is_not_there_is_passed_over(tmp_path):
    (tmp_path / "test_here.py").write_text("def test_it(): pass\n")
    (tmp_path / "test_gone.py").symlink_to("extern/test_gone.py")
    found, _ = files_of_tests(tmp_path, {"words": [], "ignored": [], "most": 9}, frozenset())
    assert found == [str(tmp_path / "test_here.py")]
