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


def test_every_case_has_its_turn():
    drawn = {case for seed in range(200) for case in sampled(CASES, most=10, seed=seed, takes_all=False)}
    assert drawn == set(CASES)


def test_few_cases_and_those_asked_for_are_all_taken():
    assert sampled(CASES, most=100, seed=1, takes_all=False) == list(CASES)
    assert sampled(CASES, most=1, takes_all=True) == list(CASES)


def test_of_variants_a_run_takes_the_most_that_it_may_and_of_other_tests_all():
    colours, shapes = pytest.mark.variant("colours", most=1), pytest.mark.variant("shapes", most=2)
    marked = {"red": colours, "round": shapes, "other": None, "blue": colours, "square": shapes, "flat": shapes}
    items = [item_of(name, decorator.mark if decorator else None) for name, decorator in marked.items()]

    def taken(seed, **options):
        undrawn = undrawn_variants(items, seed=seed, **options)
        return {item.name for item in items if item not in undrawn}

    draws = [taken(seed, takes_all=False) for seed in range(40)]
    for draw in draws:
        assert "other" in draw
        assert (len(draw & {"red", "blue"}), len(draw & {"round", "square", "flat"})) == (1, 2)
    assert set.union(*draws) == set(marked) == taken(0, takes_all=True)


def test_variants_that_were_not_drawn_are_deselected():
    colours = pytest.mark.variant("colours", most=1).mark
    items = [item_of(name, colours) for name in ("red", "blue", "green")]
    config, left = Mock(), list(items)
    pytest_collection_modifyitems(config, left)
    deselected = config.hook.pytest_deselected.call_args.kwargs["items"]
    assert [*left, *deselected] == sorted(items, key=lambda item: item not in left)
    assert len(left) == (3 if TAKES_ALL else 1)


def item_of(name, marker):
    return SimpleNamespace(name=name, get_closest_marker=lambda kind: marker if kind == "variant" else None)
