import pytest

from formulacode_dagster.building.suites.questions import Timed
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.models.measurement import Arm, Verdict
from tests.support.scripted_sampler import candidate, twice_as_fast


def test_a_slow_benchmark_is_called_once_a_process_and_not_left_out(take):
    def answer(name, arm, count):
        return Timed(value=9.0 if name == "slow" and arm is Arm.BASE else 0.1, calls=1, wall=0.1, waited=True)

    taken = take(["slow", "quick"], answer)
    assert not taken.untimed
    assert {(name, once) for name, _, _, once, _ in take.world.asked[6:]} == {("slow", True), ("quick", False)}


def test_seconds_of_a_traced_call_do_not_decide_how_a_benchmark_is_timed(take):
    take([candidate("a", seconds=3.0)], twice_as_fast)
    assert {once for *_, once, _ in take.world.asked[3:]} == {False}


def test_less_time_is_spent_on_each_sample_where_all_would_not_fit(take):
    taken = take(["a", "b"], lambda *_: Timed(value=1, calls=1, wall=0.01, waited=True), SamplingPlan(max_seconds=2.0))
    assert not taken.untimed
    seconds = {seconds for _, _, _, once, seconds in take.world.asked if not once}
    assert len(seconds) == 1
    assert 0.005 <= seconds.pop() < 0.1


def test_extra_time_is_for_more_rounds_not_longer_ones(take):
    def answer(name, arm, count):
        spread = (0.2 if (count // 3) % 2 else 0.05) if arm is Arm.ORACLE else 0.1
        return Timed(value=spread, calls=1, wall=0.01, waited=True)

    def seconds_asked():
        return {seconds for _, _, _, once, seconds in take.world.asked if not once}

    plan = SamplingPlan(max_seconds=0.3)
    hasty, seconds = take(["a", "b"], answer, plan), seconds_asked()
    patient = take(["a", "b"], answer, plan, patience=3)
    assert (hasty.judged.verdict, hasty.rounds) == (Verdict.INCONCLUSIVE, 7)
    assert patient.rounds == 24
    assert seconds_asked() == seconds


def test_slow_benchmarks_are_limited_by_the_time_to_the_first_claim(take):
    def timed(wall, **more):
        def answer(name, _arm, _count):
            return Timed(value=1, calls=1, wall=0.01 if name == "l" else wall, waited=True)

        taken = take([*"abcdefghijkl"], answer, SamplingPlan(**more))
        results = [result.benchmark for result in taken.judged.results]
        assert sorted([*results, *taken.untimed]) == [*"abcdefghijkl"]
        return "".join(sorted(results))

    assert timed(0.01) == "abcdefghijkl"
    assert timed(0.3) == "abcdefgh", "l is quick, and not chosen for that"
    # two calls of 0.3 s and the timing, in each of 24 processes
    assert timed(0.3, claim_share=9.5 * 24 * 0.7 / 600) == "abcdefghi"
    assert timed(0.3, least_benchmarks=12) == "abcdefghijkl"


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_an_oversized_benchmark_is_reported_and_delays_no_other(take, names):
    def answer(name, arm, count):
        return Timed(value=1, calls=1, wall=9.0 if name == "b" else 0.1, waited=True)

    taken = take(names, answer, SamplingPlan(max_seconds=100))
    assert taken.untimed == ("b",)
    assert [result.benchmark for result in taken.judged.results] == ["a"]


def test_where_each_takes_more_than_there_is_the_quickest_is_timed(take):
    def answer(name, arm, count):
        return Timed(value=1, calls=1, wall={"a": 12.0, "b": 9.0, "c": 10.0}[name], waited=True)

    assert take(["a", "b", "c"], answer, SamplingPlan(max_seconds=200)).untimed == ("a", "c")


def test_with_more_time_nothing_timed_on_a_faster_machine_is_left_out(take):
    def answer(name, arm, count):
        return Timed(value=1, calls=1, wall=6.0 if name == "a" else 0.1, waited=True)

    plan = SamplingPlan(max_seconds=100)
    assert take(["a", "b"], answer, plan).untimed == ("a",)
    assert take(["a", "b"], answer, plan, patience=3).untimed == ()
