from __future__ import annotations

from dataclasses import replace

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.remeasure import measure_again
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import InterimAnalysis, RandomizationUnit, Source

PLAN = SamplingPlan(seconds_per_sample=0.01, max_repeats=0, looks=(InterimAnalysis(units=8, alpha=0.004),))
SLOW = "def total(n):\n    result = 0\n    for i in range(n):\n        result += i\n    return result\n"
FAST = "def total(n):\n    return n * (n - 1) // 2\n"
BROKEN = "def total(n):\n    raise ValueError('no')\n"
BENCH = "from pkg import core\n\n\ndef time_total():\n    core.total(20000)\n"
FILES = {"pkg/__init__.py": "", "pkg/core.py": SLOW, "benchmarks/__init__.py": "", "benchmarks/bench.py": BENCH}
LAID = SuiteFiles(
    "merge commit",
    {"benchmarks/__init__.py": b"", "benchmarks/later.py": BENCH.encode()},
    Source.PULL_REQUEST,
    "d" * 40,
)


@pytest.fixture
def again(tmp_path, git_patch, engine_of, image):
    """Measures the change of `pkg/core.py` to *code* by a procedure of its own, written and read as a row has it."""

    def run(code, *, suite=BASE_SUITE, benchmarks=("bench.time_total",), **changes):
        source = tmp_path / "source"
        source.mkdir()
        patch = git_patch(source, FILES, {"pkg/core.py": code})
        procedure = Procedure.of(
            image,
            patch=patch,
            suite=suite,
            benchmarks=benchmarks,
            plan=PLAN,
            rule=PLAN.rule(RandomizationUnit.PROCESS),
            limits=ResourceLimits(benchmark_seconds=10),
        ).model_copy(update=changes)
        read = Procedure.parse(procedure.to_json(), "it")
        return measure_again(engine_of(source), image, read, patch=patch, seed=7, run_id="run"), read

    return run


@pytest.mark.slow
def test_the_files_benchmarks_and_rule_are_those_of_the_procedure(again):
    (measured, log), procedure = again(FAST, suite=LAID, benchmarks=("later.time_total",))
    assert measured.is_faster, log
    assert [result.benchmark for result in measured.results] == ["later.time_total"]
    assert (measured.rule, measured.suite, measured.provenance) == (procedure.rule, LAID.name, LAID.provenance)
    assert {sample.arm for sample in measured.results[0].samples} == {"base", "oracle", "control"}
    assert measured.failures == measured.untimed == ()


@pytest.mark.slow
def test_what_is_as_fast_as_before_is_not_faster_by_being_in_the_dataset(again):
    (measured, _), _ = again(SLOW.replace("result += i", "result += i  # the same"))
    assert not measured.is_faster


@pytest.mark.slow
def test_a_slower_machine_has_triple_time_and_omits_no_benchmark(again, monkeypatch):
    given = []
    names = ("bench.time_total", "later.time_total")
    hasty = PLAN.model_copy(update={"claim_share": 1e-9, "least_benchmarks": 1})

    def budget(seconds):
        given.append(seconds)
        return TimeBudget(seconds)

    monkeypatch.setattr("formulacode_dagster.measuring.measurement.remeasure.TimeBudget", budget)
    suite = replace(LAID, files={**LAID.files, "benchmarks/bench.py": BENCH.encode()})
    (measured, log), procedure = again(FAST, suite=suite, benchmarks=names, plan=hasty)
    assert measured.is_faster, log
    assert {result.benchmark for result in measured.results} == {*names}
    assert given == [3 * procedure.plan.max_seconds]


@pytest.mark.slow
@pytest.mark.variant("benchmarks that are not those of the row", most=1)
@pytest.mark.parametrize(
    ("code", "benchmarks", "kind", "why"),
    [
        (FAST, ("bench.time_total", "bench.time_gone"), "workload_differs", "bench.time_gone: missing on the base"),
        (BROKEN, ("bench.time_total",), "oracle_breaks_benchmarks", "bench.time_total: error"),
    ],
    ids=["missing", "broken by the oracle"],
)
def test_no_verdict_is_given_over_other_benchmarks_than_the_rows(again, code, benchmarks, kind, why):
    with pytest.raises(ItemFailure, match=why) as caught:
        again(code, benchmarks=benchmarks)
    assert caught.value.kind == kind


def test_a_rule_that_this_platform_does_not_have_is_not_guessed(again):
    rule = PLAN.rule(RandomizationUnit.PROCESS).model_copy(update={"version": "of tomorrow"})
    with pytest.raises(ItemFailure, match="version of tomorrow of the rule") as caught:
        again(FAST, rule=rule)
    assert caught.value.kind == "rule_unknown"
