import pytest

from formulacode_dagster.suites.harness.collect import run_options


@pytest.mark.parametrize(
    ("version", "filters"), [("3.0.4", False), ("3.1.0", True), ("3.10.1", True), ("8.4.0rc1", True)]
)
def test_a_filter_of_warnings_is_asked_of_no_pytest_that_has_none(version, filters):
    assert ("-W" in run_options(version)) is filters
