from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.operating.monitoring.alert import late_month


@pytest.mark.parametrize(
    ("released", "now", "late"),
    [
        ([], "2026-04-28T06:00", None),
        (["2026-02"], "2026-04-28T06:00", "2026-03"),
        (["2026-02"], "2026-04-28T05:59", None),
        (["2026-02", "2026-03"], "2026-04-28T06:00", None),
        (["2025-11"], "2026-01-28T06:00", "2025-12"),
        (["2026-05"], "2026-04-28T06:00", None),
    ],
)
def test_a_month_is_late_from_day_28_if_earlier_ones_were_released(
    released: list[str], now: str, late: str | None
) -> None:
    month = late_month(released, datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert (month.key if month else None) == late
