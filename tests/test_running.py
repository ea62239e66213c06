"""How the workers of a run import the files of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import from_share_on

FILES = [Path(f"test_{number}.py") for number in range(10)]


@pytest.mark.parametrize(("number", "first"), [(0, 0), (1, 2), (2, 5), (3, 7)])
def test_each_worker_begins_with_a_share_of_its_own_and_imports_every_file(number: int, first: int) -> None:
    order = from_share_on(FILES, number, of=4)
    assert order[0] == FILES[first]
    assert order[-1] == FILES[first - 1]
    assert sorted(order) == sorted(FILES)
