"""The sample of slow combinations that a run takes."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.support.sampling import TAKES_ALL, pytest_collection_modifyitems, sampled, undrawn_variants

CASES = range(100)


def test_a_seed_always_draws_the_same_and_another_seed_others():
    first = sampled(CASES, most=10, seed=1, takes_all=False)
    assert first == sampled(CASES, most=10, seed=1, takes_all=False) == sorted(set(first))
    assert len(first) == 10
    assert first != sampled(CASES, most=10, seed=2, takes_all=False)
    assert first != sampled(CASES, most=10, of="other", seed=1, takes_all=False)


@pytest.mark.parametrize(("most", "turns"), [(10, 10), (1, 100), (30, 4)])
@pytest.mark.parametrize("first", [0, 202610181200])
def test_every_case_has_its_turn_before_any_has_another(most, turns, first):
    first -= first % turns
    draws = [sampled(CASES, most=most, seed=first + turn, takes_all=False) for turn in range(2 * turns)]
    assert {len(set(draw)) for draw in draws} == {most}
    for half in (draws[:turns], draws[turns:]):
        assert {case for draw in half for case in draw} == set(CASES)
    assert draws[:turns] != draws[turns:], "what was drawn together is not so for ever"


def test_seeds_that_are_always_as_far_apart_draw_every_case_too():
    drawn = {case for night in range(200) for case in sampled(range(4), most=1, seed=10_000 * night, takes_all=False)}
    assert drawn == set(range(4))


def test_few_cases_and_those_asked_for_are_all_taken():
    assert sampled(CASES, most=100, seed=1, takes_all=False) == list(CASES)
    assert sampled(CASES, most=1, takes_all=True) == list(CASES)


def test_variants_are_sampled_up_to_the_limit_and_other_tests_all_run():
    colours, shapes = pytest.mark.variant("colours", most=1), pytest.mark.variant("shapes", most=2)
    marked = {"red": colours, "round": shapes, "other": None, "blue": colours, "square": shapes, "flat": shapes}
    items = [item_of(name, *([decorator.mark] if decorator else [])) for name, decorator in marked.items()]

    def taken(seed, **options):
        undrawn = undrawn_variants(items, seed=seed, **options)
        return {item.name for item in items if item not in undrawn}

    draws = [taken(seed, takes_all=False) for seed in range(40)]
    for draw in draws:
        assert "other" in draw
        assert (len(draw & {"red", "blue"}), len(draw & {"round", "square", "flat"})) == (1, 2)
    assert set.union(*draws) == set(marked) == taken(0, takes_all=True)


def test_variants_of_one_case_are_drawn_together():
    kept = pytest.mark.variant("kept", most=1)
    cases = {"builds": "one", "goes on": "one", "breaks": "two", "mends": "two", "alone": None}
    marks = {name: kept.with_args(case=case) if case else kept for name, case in cases.items()}
    items = [item_of(name, decorator.mark) for name, decorator in marks.items()]

    def taken(seed):
        undrawn = undrawn_variants(items, seed=seed, takes_all=False)
        return tuple(item.name for item in items if item not in undrawn)

    assert {taken(seed) for seed in range(3)} == {("builds", "goes on"), ("breaks", "mends"), ("alone",)}


def test_what_is_a_variant_of_two_things_is_taken_where_both_draws_take_it():
    place, kind = pytest.mark.variant("place", most=1), pytest.mark.variant("kind", most=1)
    inside = place.with_args(case="inside").mark
    items = [item_of("timed", kind.mark, inside), item_of("tested", kind.mark, inside), item_of("outside", place.mark)]

    def taken(seed):
        undrawn = undrawn_variants(items, seed=seed, takes_all=False)
        return tuple(item.name for item in items if item not in undrawn)

    assert {taken(seed) for seed in range(40)} == {("timed",), ("tested",), ("outside",)}


def test_variants_that_were_not_drawn_are_deselected():
    colours = pytest.mark.variant("colours", most=1).mark
    items = [item_of(name, colours) for name in ("red", "blue", "green")]
    config, left = Mock(), list(items)
    pytest_collection_modifyitems(config, left)
    deselected = config.hook.pytest_deselected.call_args.kwargs["items"]
    assert [*left, *deselected] == sorted(items, key=lambda item: item not in left)
    assert len(left) == (3 if TAKES_ALL else 1)


def item_of(name, *markers):
    return SimpleNamespace(name=name, iter_markers=lambda kind: iter(markers if kind == "variant" else ()))
