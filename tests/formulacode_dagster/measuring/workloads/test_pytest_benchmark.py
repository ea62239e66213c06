"""Suites of pytest-benchmark as benchmarks, without pytest-benchmark."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.workloads.pytest_benchmark import pytest_benchmark_suites, using_the_fixture
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import ChangedFile
from tests.records import make_spec

from .conftest import TOTAL

SPEC = make_spec(benchmark_dir="benchmarks", package_name="pkg")
BENCH = """
import pytest
from pkg import core


@pytest.mark.parametrize("n", [10, 20])
def test_total(benchmark, n):
    benchmark(core.total, n)


def test_untouched(benchmark):
    core.total(3)
    benchmark(core.untouched)
"""
PLAIN = "from pkg import core\n\n\ndef test_total():\n    # no benchmark\n    core.total(3)\n"


def suites(place, names=frozenset()):
    return list(pytest_benchmark_suites(place.mirror, place.pr, SPEC, names))


@pytest.mark.slow
def test_a_call_of_the_fixture_is_a_workload_with_its_parameters(world):
    place = world(base="", tests={"perf/bench_core.py": BENCH})
    (suite,) = suites(place, {"untouched"})
    provenance = suite.provenance
    assert (provenance.source, provenance.commit) == (Source.PYTEST_BENCHMARK, place.pr.facts.merge_commit_sha)
    # first what speaks of the change
    assert provenance.adapted == ("perf/bench_core.py: test_untouched", "perf/bench_core.py: test_total")
    assert place.executed(suite) == {
        "own_tests.perf_bench_core_test_total.time_call('test_total[10]')": TOTAL,
        "own_tests.perf_bench_core_test_total.time_call('test_total[20]')": TOTAL,
        "own_tests.perf_bench_core_test_untouched.time_call('test_untouched')": frozenset(),
    }


def test_tests_without_the_fixture_are_no_suite(world):
    assert suites(world(base="", tests={"tests/test_core.py": PLAIN, "tests/test_broken.py": "benchmark = (\n"})) == []


def test_tests_among_benchmarks_are_skipped_since_an_overlay_removes_them(world):
    assert suites(world(base="", tests={"benchmarks/test_core.py": BENCH})) == []


def test_a_suite_that_the_pull_request_changes_is_laid_over_every_arm(world):
    place = world(base="", tests={"tests/test_core.py": BENCH})
    files = (*place.pr.change.files, ChangedFile(path="tests/test_core.py", status="M"))
    place.pr = place.pr.model_copy(update={"change": place.pr.change.model_copy(update={"files": files})})
    (suite,) = suites(place)
    assert suite.files["tests/test_core.py"] == BENCH.encode()


def test_package_code_is_not_overlaid_despite_its_benchmark_path(world):
    place = world(base="", tests={"perf/bench_core.py": BENCH, "pkg/benching.py": "", "pkg/testing/data.py": ""})
    paths = ("perf/bench_core.py", "pkg/benching.py", "pkg/testing/data.py", "benchmarks/bench.py")
    files = tuple(ChangedFile(path=path, status="M") for path in paths)
    place.pr = place.pr.model_copy(update={"change": place.pr.change.model_copy(update={"files": files})})
    (suite,) = suites(place)
    assert set(suite.files) == {"perf/bench_core.py", "benchmarks/__init__.py", "benchmarks/own_tests.py"}
    # what is handed over may be short: it is called in batches
    assert suite.files["benchmarks/own_tests.py"].count(b"    number = 0\n") == 2


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("def test_a(benchmark): pass", {"test_a"}, id="function"),
        pytest.param("class TestA:\n    def test_a(self, *, benchmark): pass", {"TestA::test_a"}, id="method"),
        pytest.param("@pytest.fixture\ndef made(benchmark): pass", set(), id="fixture"),
        pytest.param("def test_a(benchmarks): pass", set(), id="another argument"),
        pytest.param("async def test_a(benchmark): pass", set(), id="asynchronous"),
    ],
)
def test_who_uses_the_fixture_is_told_from_the_source(source, found):
    assert using_the_fixture(source.encode()).keys() == found


def test_a_test_nested_too_deeply_still_mentions_its_calls():
    chain = " + ".join(["1"] * 500)
    source = f"@mark({chain})\ndef test_total(benchmark):\n    benchmark(core.total, {chain}, 'of sums')\n"
    (words,) = using_the_fixture(source.encode()).values()
    assert words >= {"test_total", "benchmark", "core", "total", "of", "sums", "mark"}
