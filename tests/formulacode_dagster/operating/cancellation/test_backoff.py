"""Waits between tries."""

from __future__ import annotations

import pytest

from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after

NOW = 1_772_323_200.0  # 2026-03-01T00:00:00Z
MIDNIGHT = "Sun, 01 Mar 2026 00:00:00 GMT"
A_MINUTE_LATER = "Sun, 01 Mar 2026 00:01:00 GMT"


def test_waits_double_up_to_the_longest():
    backoff = Backoff(first_seconds=0.5, longest_seconds=3.0)
    assert [backoff.seconds(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.seconds(10_000 // 10) == 3.0


def test_jitter_spreads_waits_within_its_bounds():
    backoff = Backoff(first_seconds=2.0, longest_seconds=60.0, jitter=(0.5, 1.5))
    waits = {backoff.seconds(2) for _ in range(200)}
    assert len(waits) > 100
    assert 2.0 <= min(waits) < 3.0 < 5.0 < max(waits) <= 6.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": A_MINUTE_LATER}, 60.0),
        # by the server's clock, if it is given: ours may be wrong
        ({"retry-after": A_MINUTE_LATER, "date": A_MINUTE_LATER}, 0.0),
        ({"retry-after": MIDNIGHT, "date": A_MINUTE_LATER}, 0.0),
    ],
)
def test_what_a_server_asks_to_wait(headers, seconds):
    assert retry_after(headers, NOW) == seconds
