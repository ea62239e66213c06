from __future__ import annotations

import itertools
import math
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.models.items import Cost
from formulacode_dagster.sources.github.counting import Counted
from formulacode_dagster.sources.github.merged import split_cost
from formulacode_dagster.sources.github.packing import SEARCHES_PER_REQUEST, cut, join, pack
from formulacode_dagster.sources.github.search_limits import PUBLIC
from formulacode_dagster.sources.github.windows import Window
from tests.support.github import FEBRUARY, repository

WHOLE = Window(FEBRUARY.start, FEBRUARY.end)


def counted(number: int, count: int, window: Window = WHOLE, name: str = "") -> Counted:
    name = name or f"owner-{number}/repository-{number}"
    return Counted(repository(id=number, full_name=name), name, window, count)


MONTHS = st.lists(st.integers(0, PUBLIC.shown), max_size=80).map(
    lambda sizes: [counted(number, size) for number, size in enumerate(sizes, 1)]
)
SMALL = st.lists(st.integers(1, PUBLIC.page), min_size=1, max_size=80).map(
    lambda sizes: [counted(number, size) for number, size in enumerate(sizes, 1)]
)


@given(MONTHS, st.randoms())
def test_every_repository_with_merges_is_in_one_request_or_by_itself(month, chance):
    requests = pack(month)
    packed = sorted(window.repository.id for request in requests for window in request)
    assert packed == [window.repository.id for window in month if window.count]
    for request in requests:
        assert len(request) == 1 or sum(window.count for window in request) <= PUBLIC.page
        assert len(request) <= SEARCHES_PER_REQUEST
    shuffled = list(month)
    chance.shuffle(shuffled)
    assert pack(shuffled) == requests


@given(SMALL)
def test_no_two_requests_could_be_one(month):
    requests = pack(month)
    for first, second in itertools.combinations(requests, 2):
        full = sum(window.count for window in (*first, *second)) > PUBLIC.page
        assert full or len(first) + len(second) > SEARCHES_PER_REQUEST


@given(SMALL)
def test_pages_are_at_most_twice_as_many_as_full_ones_would_be(month):
    least = max(
        math.ceil(sum(window.count for window in month) / PUBLIC.page), math.ceil(len(month) / SEARCHES_PER_REQUEST)
    )
    assert least <= len(pack(month)) <= 2 * least + 1


@given(st.integers(2, 28 * 24 * 3600), st.integers(PUBLIC.shown + 1, 10**5))
def test_a_window_is_cut_into_parts_that_cover_it_and_are_shorter(seconds, count):
    window = Window(WHOLE.start, WHOLE.start + timedelta(seconds=seconds))
    parts = cut(counted(1, count, window))
    assert parts[0].start == window.start
    assert parts[-1].end == window.end
    assert all(pair.end == other.start for pair, other in itertools.pairwise(parts))
    assert len(parts) >= 2
    assert all(1 <= part.seconds < window.seconds for part in parts)


def test_a_second_cannot_be_cut():
    assert cut(counted(1, 1001, Window(WHOLE.start, WHOLE.start + timedelta(seconds=1)))) == ()


@given(st.lists(st.integers(0, PUBLIC.shown), min_size=1, max_size=50), st.randoms())
def test_parts_are_joined_as_far_as_search_shows_and_none_is_lost(sizes, chance):
    windows = WHOLE.split(len(sizes))
    parts = [counted(1, size, window) for size, window in zip(sizes, windows, strict=True)]
    chance.shuffle(parts)
    joined = join(parts)
    assert sum(window.count for window in joined) == sum(sizes)
    assert joined[0].window.start == WHOLE.start
    assert joined[-1].window.end == WHOLE.end
    assert all(pair.window.end == other.window.start for pair, other in itertools.pairwise(joined))
    assert all(window.count <= PUBLIC.shown for window in joined)
    assert all(pair.count + other.count > PUBLIC.shown for pair, other in itertools.pairwise(joined))
    for window in joined:
        inside = [part.count for part in parts if window.window.start <= part.window.start < window.window.end]
        assert sum(inside) == window.count


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.lists(st.integers(0, 5000), min_size=1, max_size=40))
def test_shares_add_up_and_differ_from_exact_ones_by_less_than_one(points, requests, weights):
    whole = Cost(api_points=points, api_requests=requests, bytes=points * 7)
    shares = split_cost(whole, weights)
    total = Cost.total(shares)
    assert (total.api_points, total.api_requests, total.bytes) == (points, requests, points * 7)
    if any(weights):
        for share, weight in zip(shares, weights, strict=True):
            assert abs(share.api_points - points * weight / sum(weights)) < 1


def test_without_weights_shares_are_equal():
    assert [share.api_points for share in split_cost(Cost(api_points=7), [0, 0, 0])] == [3, 2, 2]
    assert split_cost(Cost(api_points=7), []) == []
