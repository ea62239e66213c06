import math
import random

import pytest

from formulacode_dagster.measurement.verdict import benchmark_result, judge
from formulacode_dagster.models.measurement import Sample, Side

BASE = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]


def noisy_task(generator, *, speedup, benchmarks=4, rounds=7):
    """Samples as a shared machine gives them: drift over the rounds, skewed noise, and now and then a spike."""
    results = []
    for number in range(benchmarks):
        taken = []
        drift = generator.uniform(-0.03, 0.03)
        for round_number in range(rounds):
            machine = math.exp(drift * round_number + generator.gauss(0, 0.02))
            sides = list(Side)
            generator.shuffle(sides)
            for position, side in enumerate(sides):
                spike = generator.uniform(1.2, 2.0) if generator.random() < 0.05 else 1.0
                seconds = machine * spike * (1 + generator.expovariate(1 / 0.03))
                seconds /= speedup if side is Side.ORACLE else 1.0
                taken.append(Sample(side=side, round=round_number, position=position, seconds=seconds, calls=100))
        results.append(benchmark_result(f"bench.time_{number}", taken, executes_change=True))
    return results


def test_tasks_without_effect_are_hardly_ever_called_faster():
    generator = random.Random(1)  # noqa: S311
    called = sum(judge(noisy_task(generator, speedup=1.0)).is_faster for _ in range(400))
    assert called <= 2


def test_tasks_made_slower_are_never_called_faster():
    generator = random.Random(2)  # noqa: S311
    assert not any(judge(noisy_task(generator, speedup=0.8)).is_faster for _ in range(100))


def test_tasks_a_third_faster_are_nearly_always_found():
    generator = random.Random(3)  # noqa: S311
    found = sum(judge(noisy_task(generator, speedup=1.3)).is_faster for _ in range(100))
    assert found >= 97


def test_a_clear_speedup_is_found_with_its_size(samples):
    taken = samples(base=BASE, placebo=BASE[::-1], oracle=[v / 2 for v in BASE])
    verdict = judge([benchmark_result("bench.time_it", taken, executes_change=True)])
    assert verdict.is_faster
    assert verdict.significant == ("bench.time_it",)
    assert verdict.speedup == pytest.approx(2.0)
    assert "2.00x" in verdict.detail


def test_a_difference_that_the_placebo_shows_as_well_is_no_speedup(samples):
    fast = [v / 2 for v in BASE]
    taken = samples(base=BASE, placebo=fast[::-1], oracle=fast)
    result = benchmark_result("bench.time_it", taken, executes_change=True)
    assert result.speedup == pytest.approx(2.0)
    verdict = judge([result])
    assert not verdict.is_faster
    assert verdict.speedup == 1.0
    assert "placebo 2.000x" in verdict.detail


def test_a_certain_but_tiny_difference_is_no_speedup(samples):
    base = [1.0 + i * 1e-6 for i in range(7)]
    taken = samples(base=base, placebo=base[::-1], oracle=[v / 1.02 for v in base])
    assert not judge([benchmark_result("bench.time_it", taken, executes_change=True)]).is_faster


def test_one_lucky_benchmark_among_many_is_corrected_away(samples):
    """Two samples overlap: p = 0.002 alone, and not below alpha among sixteen."""
    oracle = [0.5, 0.51, 0.52, 0.53, 0.54, 1.005, 1.015]
    lucky = benchmark_result(
        "bench.time_lucky", samples(base=BASE, placebo=BASE[::-1], oracle=oracle), executes_change=True
    )
    same = samples(base=BASE, placebo=BASE[::-1], oracle=BASE)
    others = [benchmark_result(f"bench.time_{n}", same, executes_change=True) for n in range(15)]
    assert judge([lucky]).is_faster
    assert not judge([lucky, *others]).is_faster


def test_what_got_slower_is_told(samples):
    faster = samples(base=BASE, placebo=BASE[::-1], oracle=[v / 3 for v in BASE])
    slower = samples(base=BASE, placebo=BASE[::-1], oracle=[v * 4 for v in BASE])
    verdict = judge(
        [
            benchmark_result("bench.time_good", faster, executes_change=True),
            benchmark_result("bench.time_bad", slower, executes_change=True),
        ]
    )
    assert verdict.significant == ("bench.time_good",)
    assert verdict.slower == ("bench.time_bad",)
    assert "1 slower, at worst 0.25x (bench.time_bad)" in verdict.detail


def test_nothing_measured_is_not_faster():
    verdict = judge([])
    assert not verdict.is_faster
    assert verdict.speedup == 1.0


def test_a_side_without_samples_is_refused(samples):
    with pytest.raises(ValueError, match="both sides"):
        benchmark_result("bench.time_it", samples(base=BASE, oracle=BASE), executes_change=True)
