"""Sums on simulated runs whose answers are known."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

from formulacode_dagster.models.agent_run import TaskFacts
from formulacode_dagster.releasing.exports.grader.terminal_reports import formulacode
from formulacode_dagster.releasing.results import sums
from tests.support.agent_runs import agent_run, speedups
from tests.support.harnesses import call


def test_tasks_weigh_the_same_whatever_their_runs_are():
    runs = [*(agent_run("a", 1.0, turns=n) for n in range(9)), agent_run("b", 0.0)]
    mean = sums.mean_over_tasks(sums.by_task(runs, sums.reward))
    assert (mean.value, mean.tasks) == (0.5, 2)
    assert mean.low <= 0.5 <= mean.high


def test_failures_of_infrastructure_and_regrades_are_in_no_sum():
    runs = [agent_run("a", 0.8), agent_run("a", None), agent_run("b", None), agent_run("a", 0.0, regrade_of="t")]
    assert sums.by_task(runs, sums.reward) == {"a": [0.8]}
    assert sums.mean_over_tasks(sums.by_task([agent_run("b", None)], sums.reward)) is None


def test_the_interval_has_its_seed_from_the_scores():
    scores = {"a": [0.1, 0.9, 0.4], "b": [0.5], "c": [0.2, 0.3]}
    mean = sums.mean_over_tasks(scores)
    assert mean == sums.mean_over_tasks(dict(reversed(scores.items())))
    assert mean.low < mean.value < mean.high
    certain = sums.mean_over_tasks({"a": [0.5, 0.5], "b": [0.5]})
    assert (certain.low, certain.value, certain.high) == (0.5, 0.5, 0.5)


@pytest.mark.slow
def test_intervals_cover_the_true_mean_as_often_as_they_say():
    """60 tasks of uniform difficulty, 3 noisy runs each: the truth is 0.5, and 95 % of intervals have it."""
    chance = np.random.default_rng(7)
    trials, covered = 120, 0
    for _ in range(trials):
        truths = chance.uniform(0.2, 0.8, size=60)
        scores = {str(n): list(truth + chance.uniform(-0.2, 0.2, size=3)) for n, truth in enumerate(truths)}
        mean = sums.mean_over_tasks(scores, resamples=300)
        covered += mean.low <= 0.5 <= mean.high
    assert covered / trials > 0.88


def test_few_runs_of_few_tasks_make_wide_intervals():
    chance = np.random.default_rng(8)

    def width(tasks, runs):
        scores = {str(n): list(chance.uniform(size=runs)) for n in range(tasks)}
        mean = sums.mean_over_tasks(scores)
        return mean.high - mean.low

    assert width(100, 5) < width(25, 5) / 1.5
    # runs are drawn, too: one task with ten different runs has no certain mean
    assert width(1, 10) > 0.1


def test_a_paired_difference_sees_what_tasks_hide():
    """Tasks differ by far more than the agents do, and one agent is 0.05 better on each."""
    chance = np.random.default_rng(9)
    hard = {str(n): float(chance.uniform(0.1, 0.9)) for n in range(50)}
    one = {name: [value + 0.05 + float(chance.normal(0, 0.02)) for _ in range(2)] for name, value in hard.items()}
    other = {name: [value + float(chance.normal(0, 0.02)) for _ in range(2)] for name, value in hard.items()}
    gain = sums.paired_difference(one, other)
    assert gain.value == pytest.approx(0.05, abs=0.01)
    assert gain.low > 0
    first, second = sums.mean_over_tasks(one), sums.mean_over_tasks(other)
    assert first.low < second.high
    same = sums.paired_difference(one, one)
    assert same.low < 0 == same.value < same.high
    assert sums.paired_difference(one, {**other, "only here": [1.0]}).tasks == 50
    assert sums.paired_difference(one, {"only here": [1.0]}) is None


def test_shares_at_a_threshold_are_means_of_runs_within_tasks():
    runs = [agent_run("a", 0.95), agent_run("a", 0.4), agent_run("b", 0.5)]
    shares = [sums.mean_over_tasks(sums.by_task(runs, sums.reaches(least))).value for least in (sums.HALF, sums.NEARLY)]
    assert shares == [0.75, 0.25]


def test_pass_at_k_has_no_bias():
    scores = {"a": [1.0, 0.0, 0.0, 0.0], "b": [0.6, 0.7], "c": [0.2]}
    assert sums.pass_at(1, scores) == (pytest.approx((0.25 + 1 + 0) / 3), 3)
    assert sums.pass_at(2, scores) == (pytest.approx((0.5 + 1) / 2), 2)
    assert sums.pass_at(4, scores) == (1.0, 1)
    assert sums.pass_at(5, scores) is None
    assert sums.pass_curve(scores) == {1: pytest.approx(1.25 / 3)}
    assert sums.pass_curve({"a": [1.0, 0.0, 0.0]}) == {1: pytest.approx(1 / 3), 2: pytest.approx(2 / 3), 3: 1.0}
    # simulated: each run passes with 0.3, so that one of 3 does with 1 - 0.7**3
    chance = np.random.default_rng(10)
    many = {str(n): list(chance.binomial(1, 0.3, size=8).astype(float)) for n in range(3000)}
    assert sums.pass_at(3, many)[0] == pytest.approx(1 - 0.7**3, abs=0.02)


BENCHMARKS = speedups(
    one__time_a=(2.0, 4.0),
    one__Class__time_a=(3.0, 3.0),
    one__Class__time_b=(8.0, 2.0),
    **{"two__deep__time_c(1)": (1.0, 1.5), "two__deep__time_c(2)": (1.2, 1.0), "time_bare": (5.0, 1.0)},
)
PARSED = """
import json, sys
from fceval.parsers.formulacode_parser import FormulaCodeParser
told = FormulaCodeParser()._compute_advantage_from_speedups(json.loads(sys.argv[1]))
print(json.dumps([told[f"agent_advantage_level{level}"] for level in (1, 2, 3, 4)]))
"""


def test_the_advantage_is_the_one_of_the_export_for_fc_eval():
    task = {"benchmarks": [each.benchmark for each in BENCHMARKS], "pass_to_pass": []}
    measured = {each.benchmark: {"speedup": each.speedup, "oracle_speedup": each.oracle_speedup} for each in BENCHMARKS}
    told = formulacode({"reason": "faster", "metrics": {}, "benchmarks": measured}, task, "a:b")
    block = json.loads(told.partition("FORMULACODE_RESULT_START\n")[2].partition("\n")[0])
    for level in sums.LEVELS:
        ours = sums.advantage_of(BENCHMARKS, level)
        assert ours == pytest.approx(block[f"agent_advantage_level{level}"], rel=1e-5)
    assert sums.advantage_of(BENCHMARKS[:1], 4) == pytest.approx(-2.0)
    assert sums.advantage_of(speedups(a=(0.0, 1.0), b=(math.inf, 1.0)), 1) is None


@pytest.mark.network
@pytest.mark.slow
def test_the_advantage_is_the_one_that_fc_eval_computes(tmp_path):
    told = {each.benchmark: {"agent/nop": each.speedup, "oracle/nop": each.oracle_speedup} for each in BENCHMARKS}
    theirs = json.loads(call("fc-eval", "python", "-c", PARSED, json.dumps(told), cwd=tmp_path).splitlines()[-1])
    assert [sums.advantage_of(BENCHMARKS, level) for level in sums.LEVELS] == pytest.approx(theirs)


def test_costs_are_known_of_every_run_or_not_at_all():
    runs = [agent_run("a", 1.0, dollars=1.0), agent_run("a", 0.0, dollars=3.0), agent_run("b", 0.5, dollars=4.0)]
    assert sums.mean_cost(runs) == 3.0
    assert sums.mean_cost([*runs, agent_run("c", 0.5)]) is None
    assert sums.mean_cost([agent_run("c", None, dollars=1.0)]) is None


def test_an_agent_is_on_the_pareto_front_unless_another_beats_it():
    points = {"cheap": (1.0, 0.2), "dear": (9.0, 0.8), "beaten": (9.0, 0.5), "same": (1.0, 0.2), "worst": (10.0, 0.1)}
    assert sums.pareto(points) == {"cheap", "same", "dear"}


def test_a_large_table_takes_seconds():
    chance = np.random.default_rng(11)
    scores = {str(n): list(chance.uniform(size=5)) for n in range(2000)}
    started = time.process_time()
    sums.mean_over_tasks(scores)
    assert time.process_time() - started < 10


def facts(**changes):
    """Facts about a task."""
    known = {"category": "cache", "difficulty": "easy", "language": "C", "workload_source": "own", "size": "1.5–2×"}
    return TaskFacts.model_validate({"merged_at": "2026-02-01T00:00:00Z", **known, **changes})


def test_strata_have_the_means_that_the_runs_were_drawn_from():
    chance = np.random.default_rng(5)
    runs = [
        agent_run(
            f"t{task}", float(np.clip(chance.normal(mean, 0.1), 0, 1)), name=f"{task}-{run}", task=facts(size=size)
        )
        for task, (mean, size) in enumerate([(0.2, "1.1–1.25×"), (0.8, "4–10×")] * 100)
        for run in range(3)
    ]
    by = {(each.by, each.name): each for each in sums.strata(runs, resamples=200)}
    assert [key for key in by if key[0] == "size"] == [("size", "1.1–1.25×"), ("size", "4–10×")]
    for name, mean in (("1.1–1.25×", 0.2), ("4–10×", 0.8)):
        found = by["size", name]
        assert (found.score.tasks, found.runs) == (100, 300)
        assert found.score.value == pytest.approx(mean, abs=0.02)
        assert found.score.low < mean < found.score.high
    whole = by["category", "cache"]
    assert whole.score.value == pytest.approx(sums.plain_mean(sums.by_task(runs, sums.reward)))
    assert whole.score.value == pytest.approx(
        (by["size", "1.1–1.25×"].score.value + by["size", "4–10×"].score.value) / 2
    )


def test_runs_without_facts_failures_and_regrades_are_in_no_stratum():
    runs = [agent_run("a", 1.0), agent_run("b", None, task=facts()), agent_run("c", 1.0, task=facts(), regrade_of="x")]
    assert sums.strata(runs) == []


def test_clean_runs_are_those_that_surely_are():
    marks = {"a": "yes", "b": "no", "c": "unknown"}
    runs = [agent_run(task, 1.0, contaminated=mark) for task, mark in marks.items()]
    assert [run.task_id for run in sums.clean(runs)] == ["b"]
