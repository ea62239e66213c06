from __future__ import annotations

import pytest

from assets.partitions import first_month
from formulacode_dagster.models.errors import ConfigurationError


def test_the_list_of_months_begins_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_FIRST_MONTH", "2024-05")
    assert first_month() == "2024-05"
    monkeypatch.setenv("FC_FIRST_MONTH", "May 2024")
    with pytest.raises(ConfigurationError, match=r"FC_FIRST_MONTH: 'May 2024' is not a month"):
        first_month()
