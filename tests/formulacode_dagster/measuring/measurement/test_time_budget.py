"""Activities that count against the time of a task, and those that do not."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import pytest

from formulacode_dagster.measuring.measurement.time_budget import TimeBudget


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_looking_for_what_to_time_costs_nothing_of_the_time_for_it() -> None:
    clock = Clock()
    budget = TimeBudget(100.0, clock=clock)

    def made():
        for number in range(2):
            clock.now += 40
            yield number
        clock.now += 40

    for _ in budget.paused_between(made()):
        clock.now += 3
    assert (budget.spent, budget.left, budget.built) == (6.0, 94.0, 0.0)


def test_a_build_costs_its_own_time_and_what_it_waits_for_costs_none() -> None:
    clock = Clock()
    budget = TimeBudget(100.0, clock=clock)

    @contextmanager
    def turn():
        clock.now += 4 * 3600
        yield

    with budget.building(turn()):
        clock.now += 50
    with budget.paused_at_first(turn()):
        clock.now += 3
    with suppress(ValueError), budget.building():
        clock.now += 10
        raise ValueError
    assert (budget.spent, budget.built) == (3.0, 60.0)


def test_what_fails_while_it_is_paused_lets_it_go_on() -> None:
    clock = Clock()
    budget = TimeBudget(100.0, clock=clock)

    def failing():
        clock.now += 40
        raise ValueError("no")
        yield

    with pytest.raises(ValueError, match="no"):
        list(budget.paused_between(failing()))
    clock.now += 5
    assert budget.spent == 5.0
