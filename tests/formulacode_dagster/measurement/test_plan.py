from collections import Counter

import pytest
from pydantic import ValidationError

from formulacode_dagster.measurement.plan import SamplingPlan, interleave
from formulacode_dagster.models.measurement import Side


def test_fewer_than_seven_rounds_are_refused():
    with pytest.raises(ValidationError, match="rounds"):
        SamplingPlan(rounds=6)


def test_a_plan_that_could_never_find_anything_is_refused():
    with pytest.raises(ValidationError, match="never reach"):
        SamplingPlan(rounds=7, max_benchmarks=200)
    SamplingPlan(rounds=10, max_benchmarks=200)


def test_every_round_times_every_side_of_every_benchmark_once():
    for order in interleave(["a", "b", "c"], rounds=7, seed=1):
        assert Counter(order) == Counter((name, side) for name in "abc" for side in Side)


def test_the_sides_of_a_benchmark_stand_next_to_each_other():
    for order in interleave(["a", "b", "c"], rounds=7, seed=1):
        names = [name for name, _ in order]
        assert all(len(set(names[start : start + 3])) == 1 for start in range(0, 9, 3))


def test_in_six_rounds_no_side_has_an_earlier_place_than_another():
    places = Counter()
    for order in interleave(["a"], rounds=6, seed=5):
        places.update((side, place) for place, (_, side) in enumerate(order))
    assert set(places.values()) == {2}


def test_the_order_differs_between_rounds_and_is_the_same_for_the_same_seed():
    first = list(interleave(list("abcd"), rounds=7, seed=1))
    assert first == list(interleave(list("abcd"), rounds=7, seed=1))
    assert first != list(interleave(list("abcd"), rounds=7, seed=2))
    assert len({tuple(order) for order in first}) > 1
