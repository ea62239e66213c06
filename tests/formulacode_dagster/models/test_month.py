from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month


def test_a_month_is_a_half_open_window_in_utc() -> None:
    month = Month.parse("2026-02")
    assert month.start == datetime(2026, 2, 1, tzinfo=UTC)
    assert month.end == datetime(2026, 3, 1, tzinfo=UTC)
    assert month.holds(datetime(2026, 2, 1, tzinfo=UTC))
    assert not month.holds(datetime(2026, 3, 1, tzinfo=UTC))
    assert month.holds(datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=1))))


def test_a_release_is_named_after_the_month_in_which_the_window_ends() -> None:
    assert Month.parse("2026-02").release == "formulacode@2026-03"
    assert Month.parse("2025-12").release == "formulacode@2026-01"


def test_neighbours_cross_the_year() -> None:
    assert Month.parse("2025-12").next() == Month.parse("2026-01")
    assert Month.parse("2026-01").previous() == Month.parse("2025-12")
    assert Month.of(datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)).key == "2026-01"


@pytest.mark.parametrize("text", ["2026", "2026-13", "2026-2", "02-2026", "2026-02-01", "", "1999-01"])
def test_what_is_no_covered_month_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Month.parse(text)
