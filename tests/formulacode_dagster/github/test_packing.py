from __future__ import annotations

import itertools
import math
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.github.counting import Counted
from formulacode_dagster.github.packing import LONGEST_QUERY, SEARCH_CAP, Leaf, cut, join, pack
from formulacode_dagster.github.shares import shared
from formulacode_dagster.github.windows import Window
from formulacode_dagster.models.items import Cost
from tests.formulacode_dagster.github.conftest import FEBRUARY, repository

WHOLE = Window(FEBRUARY.start, FEBRUARY.end)
PAGE = 100


def counted(number: int, count: int, window: Window = WHOLE, name: str = "") -> Counted:
    name = name or f"owner-{number}/repository-{number}"
    return Counted(repository(id=number, full_name=name), name, window, count)


NAMES = st.text(st.sampled_from("abcdefgh-."), min_size=1, max_size=100)
MONTHS = st.lists(st.tuples(st.integers(0, SEARCH_CAP), NAMES), max_size=60).map(
    lambda drawn: [counted(number, count, name=f"o{number}/{name}") for number, (count, name) in enumerate(drawn, 1)]
)


@given(MONTHS, st.randoms())
def test_every_repository_that_merged_anything_is_in_exactly_one_search_within_both_limits(month, chance):
    leaves = pack(month)
    packed = sorted(one.repository.id for leaf in leaves for one in leaf.counted)
    assert packed == [one.repository.id for one in month if one.count]
    assert all(leaf.count <= SEARCH_CAP and len(leaf.text) <= LONGEST_QUERY for leaf in leaves)
    shuffled = list(month)
    chance.shuffle(shuffled)
    assert pack(shuffled) == leaves


@given(MONTHS)
def test_no_two_searches_could_be_one(month):
    leaves = pack(month)
    for index, one in enumerate(leaves):
        for other in leaves[index + 1 :]:
            both = Leaf((*one.counted, *other.counted))
            assert both.count > SEARCH_CAP or len(both.text) > LONGEST_QUERY


@given(st.lists(st.integers(1, SEARCH_CAP), min_size=1, max_size=60))
def test_pages_are_as_few_as_full_ones_allow_but_one_a_search(sizes):
    leaves = pack([counted(number, size) for number, size in enumerate(sizes, 1)], longest=10**6)
    pages = sum(math.ceil(leaf.count / PAGE) for leaf in leaves)
    assert pages <= math.ceil(sum(sizes) / PAGE) + len(leaves)
    # first-fit leaves at most one search less than half full
    assert len(leaves) <= 2 * math.ceil(sum(sizes) / SEARCH_CAP)


@given(st.integers(2, 28 * 24 * 3600), st.integers(SEARCH_CAP + 1, 10**5))
def test_a_window_is_cut_into_parts_that_cover_it_and_are_shorter(seconds, count):
    window = Window(WHOLE.start, WHOLE.start + timedelta(seconds=seconds))
    parts = cut(counted(1, count, window))
    assert parts[0].start == window.start
    assert parts[-1].end == window.end
    assert all(one.end == other.start for one, other in itertools.pairwise(parts))
    assert len(parts) >= 2
    assert all(1 <= part.seconds < window.seconds for part in parts)


def test_a_second_cannot_be_cut():
    assert cut(counted(1, 1001, Window(WHOLE.start, WHOLE.start + timedelta(seconds=1)))) == ()


@given(st.lists(st.integers(0, SEARCH_CAP), min_size=1, max_size=50), st.randoms())
def test_parts_are_joined_as_far_as_search_shows_and_none_is_lost(sizes, chance):
    windows = WHOLE.split(len(sizes))
    parts = [counted(1, size, window) for size, window in zip(sizes, windows, strict=True)]
    chance.shuffle(parts)
    leaves = join(parts)
    assert sum(leaf.count for leaf in leaves) == sum(sizes)
    assert all(0 < leaf.count <= SEARCH_CAP for leaf in leaves)
    assert all(one.window.end <= other.window.start for one, other in itertools.pairwise(leaves))
    for leaf in leaves:
        inside = [part.count for part in parts if leaf.window.start <= part.window.start < leaf.window.end]
        assert sum(inside) == leaf.count


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.lists(st.integers(0, 5000), min_size=1, max_size=40))
def test_shares_add_up_to_the_whole_and_differ_from_the_exact_ones_by_less_than_one(points, requests, weights):
    whole = Cost(api_points=points, api_requests=requests, bytes=points * 7)
    shares = shared(whole, weights)
    total = Cost.total(shares)
    assert (total.api_points, total.api_requests, total.bytes) == (points, requests, points * 7)
    if any(weights):
        for share, weight in zip(shares, weights, strict=True):
            assert abs(share.api_points - points * weight / sum(weights)) < 1


def test_without_weights_shares_are_equal():
    assert [share.api_points for share in shared(Cost(api_points=7), [0, 0, 0])] == [3, 2, 2]
    assert shared(Cost(api_points=7), []) == []
