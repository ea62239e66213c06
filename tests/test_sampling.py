"""The sample of slow combinations that a run takes."""

from __future__ import annotations

from tests.support.sampling import sampled

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
