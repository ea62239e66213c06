"""Windows of many repositories over real HTTP, from a GitHub that counts its points: whole, and cheap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from formulacode_dagster.models.items import Cost
from sandbox.github import Limits
from tests.formulacode_dagster.sources.github.merged_windows import every, failure, numbers
from tests.support.github import FEBRUARY


def sorted_ends(world, clock, *names: str, **more: Any) -> list[Any]:
    rows = {row.full_name.partition("/")[2]: row for row in world.rows()}
    return world.taken_in([rows[name] for name in names], clock, **more)


def test_small_repositories_share_requests_and_get_their_own_by_number(world, clock):
    sizes = [0, 1, 2, 30, 120, 47]
    for index, size in enumerate(sizes):
        world.merge(f"demo/p{index}", every(600, size))
    ends = world.taken_in(world.rows(), clock)
    assert [numbers(end) for end in ends] == [list(range(1, size + 1)) for size in sizes]
    assert world.books["endpoints"]["graphql MergedCounts"] == 1
    # 120 by themselves, in a full page and one of 20; the others, 80 in all, in one more
    assert world.books["endpoints"]["graphql MergedPullRequests"] == 3
    assert world.books["points"]["graphql"] == 1 + 2 + 2 + 1 + 2
    # all together, then 120 in one more page
    assert world.books["endpoints"]["graphql NewestMerges"] == 2


def test_the_cost_of_what_was_asked_together_is_shared_out_whole(world, clock):
    for index, size in enumerate([0, 3, 40, 150]):
        world.merge(f"demo/p{index}", every(600, size))
    ends = world.taken_in(world.rows(), clock)
    whole = Cost.total(end.cost for end in ends)
    assert whole.model_copy(update={"seconds": 0}) == world.cost.model_copy(update={"seconds": 0})
    assert whole.seconds == pytest.approx(world.cost.seconds)
    assert whole.api_points == world.books["points"]["graphql"] <= 1 + 5 * 193 / 100
    assert whole.api_requests == world.books["total"]
    assert ends[0].cost.api_points == 1, "that of confirming that it merged nothing"
    assert ends[3].cost.api_points == max(end.cost.api_points for end in ends)


def test_the_window_is_half_open_to_the_second(world, clock):
    second = timedelta(seconds=1)
    world.merge("demo/p", [FEBRUARY.start - second, FEBRUARY.start, FEBRUARY.end - second, FEBRUARY.end])
    (end,) = world.taken_in(world.rows(), clock)
    assert numbers(end) == [2, 3]


@pytest.mark.slow
def test_large_results_are_found_by_dividing_the_time(world, clock):
    world.merge("demo/busy", [*every(60, 900), *every(1, 300, datetime(2026, 2, 20, tzinfo=UTC))])
    world.merge("demo/burst", [*every(3000, 400), *every(1 / 4, 1400, datetime(2026, 2, 7, tzinfo=UTC))])
    world.merge("demo/calm", every(600, 20))
    busy, burst, calm = (numbers(end) for end in sorted_ends(world, clock, "busy", "burst", "calm"))
    assert (busy, burst, calm) == (list(range(1, 1201)), list(range(1, 1801)), list(range(1, 21)))
    assert world.books["points"]["graphql"] <= 5 * 3020 / 100


@pytest.mark.slow
def test_a_second_with_more_than_search_shows_fails_by_name_and_alone(world, clock):
    world.merge("demo/burst", [FEBRUARY.start] * 1001)
    world.merge("demo/calm", every(600, 5))
    burst, calm = sorted_ends(world, clock, "burst", "calm")
    assert "demo/burst is not complete: 1001 were merged in the second 2026-02-01T00:00:00Z" in str(failure(burst))
    assert burst.kind == "incomplete"
    assert numbers(calm) == [1, 2, 3, 4, 5]


def test_two_runs_of_a_closed_month_are_equal(world, clock):
    for index, size in enumerate([12, 120]):
        world.merge(f"demo/p{index}", every(600, size))
    rows = world.rows()
    assert world.taken_in(rows, clock) == world.taken_in(rows[::-1], clock)[::-1]


def test_search_caps_lower_than_ours_are_no_loss(world, clock):
    world.merge("demo/p", every(600, 30))
    (end,) = world.taken_in(world.rows(), clock, limits=Limits(search_cap=20))
    assert "20 of 30 in" in str(failure(end))
