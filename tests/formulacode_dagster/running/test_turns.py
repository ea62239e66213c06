from __future__ import annotations

import threading

from formulacode_dagster.running.turns import Turns


def test_one_kind_runs_side_by_side_and_another_waits_for_all_of_it() -> None:
    turns, order = Turns(), []
    timing, both = threading.Event(), threading.Barrier(3)

    def time_one() -> None:
        with turns.of("timing"):
            both.wait(10)
            timing.wait(10)
            order.append("timed")

    def test_one() -> None:
        with turns.of("testing"):
            order.append("tested")

    timers = [threading.Thread(target=time_one) for _ in range(2)]
    for thread in timers:
        thread.start()
    both.wait(10)
    tester = threading.Thread(target=test_one)
    tester.start()
    timing.set()
    for thread in (*timers, tester):
        thread.join(10)
    assert order == ["timed", "timed", "tested"]
