"""What counts against the time of a task, and what does not."""

from __future__ import annotations

import pytest

from formulacode_dagster.measurement.budget import Budget


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_looking_for_what_to_time_costs_nothing_of_the_time_for_it() -> None:
    clock = Clock()
    budget = Budget(100.0, clock=clock)

    def made():
        for number in range(2):
            clock.now += 40
            yield number
        clock.now += 40

    for _ in budget.paused_between(made()):
        clock.now += 3
    assert (budget.spent, budget.left, budget.elsewhere) == (6.0, 94.0, 120.0)


def test_what_fails_while_it_is_paused_lets_it_go_on() -> None:
    clock = Clock()
    budget = Budget(100.0, clock=clock)

    def failing():
        clock.now += 40
        raise ValueError("no")
        yield

    with pytest.raises(ValueError, match="no"):
        list(budget.paused_between(failing()))
    clock.now += 5
    assert budget.spent == 5.0
