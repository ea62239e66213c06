from __future__ import annotations

import pytest

from formulacode_dagster.operating.runner.progress import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (45, "45 s"), (59.5, "1 min 0 s"), (125, "2 min 5 s"), (4_200, "1 h 10 min"), (0, "0 s")],
)
def test_a_duration_is_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text
