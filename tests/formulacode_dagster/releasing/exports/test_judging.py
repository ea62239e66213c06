"""The grader's statistics compared with the platform's, which define its rule."""

from __future__ import annotations

import random

import numpy as np
import pytest

from formulacode_dagster.building.suites.questions import ReturnValue
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.intervals import expanded_tail
from formulacode_dagster.measuring.measurement.statistics.verdict import judge
from formulacode_dagster.models.measurement import Arm, Metric, Quantity, RandomizationUnit, Sample
from formulacode_dagster.releasing.exports.grader import judging, sampling
from formulacode_dagster.releasing.exports.grader.equality import same_values
from formulacode_dagster.releasing.exports.grader.places import AGENT, ARMS
from formulacode_dagster.releasing.exports.grader.preparing import at_one_pace, is_moved

UNITS = {"bench.time": Quantity(), "bench.peak": Quantity(metric=Metric.PEAK_MEMORY, unit="bytes")}


def samples_of(speedups, rounds, seed, *, shared):
    """Samples by benchmark, with noise; *shared* says in which rounds the oracle ran one binary."""
    chance = random.Random(seed)  # noqa: S311 - noise, protects nothing
    return {
        name: [
            Sample(
                arm=arm,
                round=number,
                order=0,
                objects=f"{arm}-{number if number not in shared else 0}",
                value=chance.lognormvariate(0, 0.04) / (speedups[name] if arm is Arm.ORACLE else 1),
                calls=1,
            )
            for number in range(rounds)
            for arm in Arm
        ]
        for name in speedups
    }


@pytest.mark.parametrize("unit", list(RandomizationUnit))
@pytest.mark.parametrize(
    "speedups",
    [
        {"bench.time": 2.0},
        {"bench.time": 1.0},
        {"bench.time": 1.06, "bench.peak": 1.0},
        {"bench.time": 1.5, "bench.peak": 0.5},
        {"bench.time": 0.5},
    ],
    ids=["faster", "unchanged", "unclear", "trade-off", "slower"],
)
@pytest.mark.parametrize(("look", "seed"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_the_grader_says_what_the_platform_says_of_the_same_samples(unit, speedups, look, seed):
    plan = SamplingPlan(seed=seed)
    quantities = {name: UNITS[name] for name in speedups}
    rule = plan.rule(unit, {quantity.metric for quantity in quantities.values()})
    taken = samples_of(speedups, rule.looks[look].units, seed, shared={1, 3} if unit is RandomizationUnit.BUILD else ())
    wanted = judge(taken, rule, look, quantities)
    told = judging.StoredRule(
        {
            **rule.model_dump(mode="json"),
            "benchmark_metrics": {name: quantity.metric.value for name, quantity in quantities.items()},
            "rates": [],
            "tails": {
                str(level): [expanded_tail((1 - level) / 2, units) for units in range(2, 25)] for level in (0.95, 0.9)
            },
        }
    )
    values = {
        arm.value: {name: [sample.value for sample in taken[name] if sample.arm is arm] for name in taken}
        for arm in Arm
    }
    objects = {arm.value: [sample.objects for sample in next(iter(taken.values())) if sample.arm is arm] for arm in Arm}
    judged = judging.judge(judging.Samples(values, objects), "oracle", told, look)
    assert judged.verdict == wanted.verdict
    figures = ("speedup", "low", "high", "p_value", "control_speedup")
    assert [getattr(judged, name) for name in figures] == pytest.approx([getattr(wanted, name) for name in figures])
    assert judged.by_benchmark == pytest.approx({result.benchmark: result.speedup for result in wanted.results})


@pytest.mark.parametrize("numbers", [(1.0, 2.0), (1.0, 2.0 + 1e-9), (1.0, 2.1), (1.0,)])
@pytest.mark.parametrize("form", ["a", "b"])
def test_the_grader_takes_for_equal_what_the_platform_does(numbers, form):
    first = ReturnValue(type="list", form="a", numbers=(1.0, 2.0), total=3.0, size=3.0)
    second = ReturnValue(type="list", form=form, numbers=numbers, total=sum(numbers), size=sum(numbers))
    assert same_values(first.model_dump(), second.model_dump()) == first.equals(second)


IMPORT = {"base": 0.010, "control": 0.010, "oracle": 0.010}
SETUP = {"base": 0.120, "control": 0.120, "oracle": 0.120, "agent": 0.130}


def scattered(seconds, rounds, seed, share):
    """Seconds of each arm's rounds, which scatter by that share."""
    scatter = np.random.default_rng(seed).lognormal(0, share, (len(seconds), rounds))
    return {arm: list(mean * row) for (arm, mean), row in zip(seconds.items(), scatter, strict=True)}


@pytest.mark.parametrize(
    ("imports", "saved", "moved"),
    [
        (IMPORT | {"agent": 0.060}, 0.050, True),
        (IMPORT | {"agent": 0.012}, 0.050, False),
        (IMPORT | {"agent": 0.035, "control": 0.036}, 0.020, False),
        (IMPORT | {"agent": 0.060, "oracle": 0.055}, 0.050, False),
        (IMPORT | {"agent": 0.110, "oracle": 0.055}, 0.050, True),
        (dict.fromkeys([*IMPORT, "agent"], 0.850), 0.0, False),
    ],
    ids=["all-at-import", "little", "bases-differ", "as-the-author", "more-than-the-author", "long-imports"],
)
def test_work_that_is_done_while_importing_is_seen_beside_what_calls_save(imports, saved, moved):
    """By rounds whose times scatter by 4 %, as those of an import of 0.85 s did."""
    found = [is_moved(scattered(imports, 11, seed, 0.04), saved) for seed in range(100)]
    assert found.count(moved) >= 99


@pytest.mark.parametrize(("rounds", "least"), [(5, 0), (10, 25), (30, 90)])
def test_more_rounds_find_ten_milliseconds_in_a_setup(rounds, least):
    found = [is_moved(scattered(SETUP, rounds, seed, 0.08), 0.010) for seed in range(100)]
    assert found.count(True) >= least
    # the others have more rounds, as far as there are any
    assert found.count(False) <= 20


@pytest.mark.parametrize("rounds", [5, 10, 30])
def test_equal_setups_are_seldom_called_longer(rounds):
    equal = dict.fromkeys(SETUP, 0.120)
    assert [is_moved(scattered(equal, rounds, seed, 0.08), 0.010) for seed in range(300)].count(True) <= 3


def test_calls_that_save_less_than_imports_scatter_need_no_more_rounds():
    assert is_moved(scattered(dict.fromkeys(SETUP, 1.0), 5, 1, 0.04), 0.010) is False


def test_few_rounds_are_enough_to_see_moved_work():
    rounds = {arm: [seconds] * 4 for arm, seconds in (IMPORT | {"agent": 0.060}).items()}
    assert is_moved(rounds, 0.050, level=0.0625)


def test_processes_of_a_slower_core_count_as_if_it_were_as_fast():
    seconds = {"base": [0.1, 0.2], "agent": [0.2, 0.1]}
    evened = at_one_pace(seconds, {"base": [0.005, 0.010], "agent": [0.010, 0.005]})
    assert evened == {arm: pytest.approx([0.15, 0.15]) for arm in seconds}


def test_calls_of_all_arms_are_batched_in_the_same_way(monkeypatch):
    monkeypatch.setattr(sampling, "StoredRule", lambda rule: rule)
    where = {"name": "bench.it", "module": "bench", "owner": "", "attribute": "it", "index": 0, "cache_folder": ""}
    surveyed = {arm: {"bench.it": {**where, "timeout": 60, "seconds": 2.0, "setup_seconds": 0.001}} for arm in ARMS}
    surveyed[AGENT]["bench.it"] |= {"seconds": 0.1, "setup_seconds": 0.5, "isolate": True}
    task = {"benchmarks": ["bench.it"], "single_call_seconds": 1, "rule": {}}
    sampler = sampling.ArmSampler(task, None, {}, surveyed, {})
    asked = [sampler._asked(arm, "bench.it", once=False) for arm in ARMS]
    assert [(each["isolate"], each["setup_seconds"], each["once"]) for each in asked] == [(True, 0.5, True)] * 4
