"""Parts of the suite in a pull request that asv's naming rule leaves out."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.workloads.missed import missed_callables
from formulacode_dagster.measuring.workloads.suites import missed_suites, other_suites
from formulacode_dagster.models.measurement import Source
from tests.records import make_spec

from .conftest import TOTAL

BASE = """
from pkg import core


class Sums:
    params = [10, 20]

    def setup(self, n):
        self.n = n

    def time_untouched(self, n):
        core.untouched()

    def old_helper(self, n):
        return n
"""
ADDED = """
    def test_total_from_the_start(self, n):
        assert self.n == n
        core.total(self.n)
"""


def missed(merged, base=BASE):
    found = missed_callables({"benchmarks/b.py": merged.encode()}, {"benchmarks/b.py": base.encode()})
    return [callable_.alias for callable_ in found]


@pytest.mark.slow
def test_a_test_among_benchmarks_is_timed_with_its_setup_and_parameters(world):
    place = world(base=BASE, merged=BASE + ADDED)
    (suite,) = missed_suites(place.mirror, place.pr, "benchmarks")
    assert place.executed(suite) == {
        **dict.fromkeys(("bench.Sums.time_untouched(10)", "bench.Sums.time_untouched(20)"), frozenset()),
        **dict.fromkeys(
            ("bench.Sums.time_test_total_from_the_start(10)", "bench.Sums.time_test_total_from_the_start(20)"), TOTAL
        ),
    }
    provenance = suite.provenance
    assert (provenance.source, provenance.commit) == (Source.MISSED_BY_RULE, place.pr.facts.merge_commit_sha)
    alias = "Sums.time_test_total_from_the_start = Sums.test_total_from_the_start"
    assert provenance.adapted == (f"benchmarks/bench.py: {alias}",)
    assert provenance.sha256


def test_a_pull_request_that_brings_nothing_but_what_asv_collects_has_none(world):
    place = world(base=BASE, merged=BASE + ADDED.replace("test_total", "time_total"))
    assert list(missed_suites(place.mirror, place.pr, "benchmarks")) == []


def test_a_pull_request_that_leaves_the_suite_alone_has_none(world):
    place = world(base=BASE + ADDED)
    assert list(missed_suites(place.mirror, place.pr, "benchmarks")) == []


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param("def bench_total():\n    core.total(3)\n", ["time_bench_total = bench_total"], id="function"),
        pytest.param("def make(n):\n    return n\n\n\nMADE = make(3)\n", [], id="a helper the suite calls"),
        pytest.param("def _bench_total():\n    core.total(3)\n", [], id="private"),
        pytest.param("class _Sums:\n    def bench_total(self):\n        pass\n", [], id="of a private class"),
        pytest.param("@property\ndef bench_total(self):\n    pass\n", [], id="decorated"),
        pytest.param("if core:\n    def bench_total():\n        pass\n", [], id="under a condition"),
        pytest.param("async def bench_total():\n    pass\n", [], id="asynchronous"),
        pytest.param("def setup():\n    pass\n\n\ndef track_it():\n    pass\n", [], id="what asv calls"),
        pytest.param("def broken(:\n", [], id="no Python"),
    ],
)
def test_what_is_missed_is_told_from_the_source(added, expected):
    assert missed(f"{BASE}\n\n{added}") == expected


def test_existing_benchmarks_are_not_the_pull_requests_unless_changed():
    assert missed(BASE.replace("untouched()", "untouched() or 1")) == []
    assert missed(BASE.replace("return n\n", "return n + 1\n")) == ["Sums.time_old_helper = Sums.old_helper"]


def test_every_source_is_asked_in_its_order_and_no_two_suites_are_the_same(world):
    later = BASE + ADDED.replace("test_total", "time_grand") + "        core.grand_total(1)\n"
    place = world(
        before=(f"{BASE}# total",),
        base=BASE,
        merged=BASE + ADDED.replace("core.total(", "repr("),
        after=(later,) * 2,
    )
    suites = list(other_suites(place.mirror, place.pr, make_spec(benchmark_dir="benchmarks"), {"grand_total", "total"}))
    assert [suite.source for suite in suites] == [
        Source.MISSED_BY_RULE,
        Source.BASE_SUITE,
        Source.LATER_SUITE,
        Source.EARLIER_SUITE,
    ]


def test_nothing_is_laid_in_the_place_of_a_whole_checkout(world):
    place = world(base=BASE, merged=BASE + ADDED)
    assert list(other_suites(place.mirror, place.pr, make_spec(benchmark_dir="."), {"total"})) == []


def test_a_benchmark_dropped_by_the_pr_is_found_in_the_bases_suite(world):
    place = world(base=BASE, merged="import nothing_there\n")
    (suite, *_) = other_suites(place.mirror, place.pr, make_spec(benchmark_dir="benchmarks"), {"total"})
    provenance = suite.provenance
    assert (provenance.source, provenance.commit) == (Source.BASE_SUITE, place.pr.change.base_sha)
    assert suite.files["benchmarks/bench.py"].decode() == BASE


@pytest.mark.parametrize("merged", [pytest.param(None, id="untouched"), pytest.param(BASE, id="the same again")])
def test_the_suite_of_the_base_is_not_tried_twice(world, merged):
    place = world(base=BASE, merged=merged)
    assert list(other_suites(place.mirror, place.pr, make_spec(benchmark_dir="benchmarks"), {"total"})) == []


def test_code_that_is_nested_too_deep_is_missed_with_its_file():
    assert missed(f"{BASE}\n\ndef test_deep():\n    return {' + '.join(['1'] * 3000)}\n") == []
