from collections import Counter

import pytest

from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.relevance import Candidate
from formulacode_dagster.measurement.sampling import take_samples
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import Side
from formulacode_dagster.suites.remote import NotTimed, SurveyedBenchmark, Timed


class ScriptedRemote:
    """A session's harness that answers from a script and remembers what it was asked."""

    def __init__(self, side, asked, answer):
        self.side, self.asked, self.answer = side, asked, answer

    def time(self, benchmark, *, isolate, seconds, hash_seed):
        self.asked.append((benchmark.attribute, self.side, hash_seed))
        return self.answer(benchmark.attribute, self.side, len(self.asked))


def candidate(name):
    fields = {"name": name, "module": "m", "owner": "", "attribute": name, "index": 0, "timeout": 1.0}
    surveyed = SurveyedBenchmark.model_validate(fields | {"cache_folder": "", "outcome": "ran"})
    return Candidate(dict.fromkeys(Side, surveyed), True)


@pytest.fixture
def take():
    def run(names, answer, plan):
        run.asked = []
        remotes = {side: ScriptedRemote(side, run.asked, answer) for side in Side}
        return take_samples(remotes, [candidate(name) for name in names], plan=plan, note=lambda _: None)

    return run


def quick(name, side, count):
    return Timed(seconds=0.1, calls=5), 1.0


def test_a_discarded_warm_up_goes_before_seven_samples_a_side(take):
    samples = take(["a", "b"], quick, SamplingPlan())
    assert len(take.asked) == 2 * 3 * 8
    assert Counter(s.side for s in samples.by_benchmark["a"]) == dict.fromkeys(Side, 7)
    assert {s.round for s in samples.by_benchmark["a"]} == set(range(7))


def test_the_sides_share_a_hash_seed_in_each_round_and_rounds_do_not(take):
    take(["a"], quick, SamplingPlan())
    seeds = [seed for _, _, seed in take.asked]
    assert all(len(set(seeds[start : start + 3])) == 1 for start in range(0, 24, 3))
    assert len(set(seeds)) == 8


def test_benchmarks_that_do_not_fit_into_the_time_are_dropped_whole(take):
    samples = take(["a", "b", "c"], quick, SamplingPlan(max_seconds=45))
    assert set(samples.by_benchmark) == {"a", "b"}
    assert samples.dropped == ("c",)


def test_one_benchmark_is_timed_even_when_none_fits(take):
    samples = take(
        ["a", "b"],
        lambda name, *_: (Timed(seconds=1, calls=1), 9.0 if name == "a" else 3.0),
        SamplingPlan(max_seconds=1),
    )
    assert set(samples.by_benchmark) == {"b"}
    assert samples.dropped == ("a",)


def test_a_timeout_on_one_side_takes_the_benchmark_out_on_all(take):
    def answer(name, side, count):
        if name == "a" and side is Side.BASE and count > 20:
            return NotTimed(kind="timeout", message="timed out"), 1.0
        return quick(name, side, count)

    samples = take(["a", "b"], answer, SamplingPlan())
    assert set(samples.by_benchmark) == {"b"}
    assert [(f.benchmark, f.side, f.kind) for f in samples.failures] == [("a", Side.BASE, "timeout")]


def test_a_failure_with_the_oracle_alone_fails_the_task(take):
    def answer(name, side, count):
        return (NotTimed(kind="crash", message="segfault"), 1.0) if side is Side.ORACLE else quick(name, side, count)

    with pytest.raises(ItemFailure) as failure:
        take(["a"], answer, SamplingPlan())
    assert failure.value.kind == "oracle_breaks_benchmarks"
    assert failure.value.log_tail == "segfault"
