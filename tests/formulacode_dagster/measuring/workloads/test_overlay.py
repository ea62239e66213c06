"""Files of a pull request that are copied over every arm, and their roles."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.workloads.overlay import (
    PytestFunction,
    class_names,
    is_laid,
    is_same_everywhere,
    suite_files,
)
from tests.records import make_spec


@pytest.mark.parametrize(
    ("changed", "path", "same"),
    [
        pytest.param("tests/test_a.py", "tests/test_a.py", True, id="beside the package"),
        pytest.param("pkg/tests/test_a.py", "pkg/tests/test_a.py", False, id="installed with it"),
        pytest.param("pkg/tests/test_b.py", "pkg/tests/test_a.py", True, id="another that is installed"),
        pytest.param("pkg/tests/conftest.py", "pkg/tests/test_a.py", False, id="what those share"),
        pytest.param("pkg/tests/conftest.py", "tests/test_a.py", True, id="what others share"),
        pytest.param("perf/timing.py", "perf/timing.py", False, id="what is not laid"),
        pytest.param("pkg/testing/data.py", "pkg/tests/test_a.py", True, id="code of the package"),
    ],
)
def test_tests_that_cannot_be_the_same_on_all_arms_are_left_out(changed, path, same):
    assert is_same_everywhere(path, [changed], "pkg") is same


@pytest.mark.parametrize(
    ("path", "package", "laid"),
    [
        ("tests/data/a.txt", "pkg", True),
        ("pkg/sub/tests/helpers.py", "pkg", True),
        ("perf/bench_core.py", "pkg", True),
        ("test_core.py", "pkg", True),
        ("core_test.py", "pkg", True),
        ("conftest.py", "pkg", True),
        ("testing/test_it/data.py", "pkg", True),
        ("benchopt/core.py", "benchopt", False),
        ("benchopt/tests/utils.py", "benchopt", True),
        ("benchmark/core.py", "benchmark", False),
        ("src/benchmark/core.py", "benchmark.core", False),
        ("pkg/testing/asserts.py", "pkg", False),
        ("src/pkg/testing/asserts.py", "pkg", False),
        ("pkg/stats/ab_test.py", "pkg", False),
        ("pkg/latest/core.py", "pkg", False),
        ("benchmark_tools.py", "benchmark_tools", False),
        ("testing/data.py", "testing", False),
        ("setup.py", "", False),
    ],
)
def test_what_is_laid_is_of_tests_or_benchmarks_to_the_letter(path, package, laid):
    assert is_laid(path, package) is laid


def test_no_class_of_benchmarks_hides_another():
    names = ("tests/io/test_x.py", "tests/io_test_x.py", "tests/io_test_x.py")
    functions = [PytestFunction(file, test) for file, test in zip(names, ("test_a", "test_a", "test_a_2"), strict=True)]
    given = class_names(functions)
    assert given[functions[0]] == "tests_io_test_x_test_a"
    assert len({*given.values()}) == 3
    text = suite_files(dict.fromkeys(functions, ()), make_spec(benchmark_dir="benchmarks"))["benchmarks/own_tests.py"]
    assert all(f"class {name}(_Workload):" in text.decode() for name in given.values())
