from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def resolution(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("resolution")


def test_the_figures_count_locks_and_tell_a_repeat_that_differs(resolution):
    first = resolution.Planned("acme/fast#1", "3.12", (4.0, 2.0, 0.0), 3, True)
    second = resolution.Planned("acme/fast#2", "lock", (8.0, 2.0, 1.0), 9, False)
    found = resolution.figures([first, second])
    assert (found["commits"], found["locked"], found["identical"]) == (2, 1, False)
    assert (found["cold_seconds_median"], found["cold_seconds_largest"]) == (6.0, 8.0)
    assert resolution.figures([first])["identical"] is True
