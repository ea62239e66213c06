from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.listed import listed, put_listed, remove_listed


def line(full_name: str, verdict: ListVerdict = ListVerdict.DENY, reason: str = "a mirror") -> ListedRepository:
    return ListedRepository(
        full_name=full_name, verdict=verdict, reason=reason, listed_at=datetime(2026, 3, 1, tzinfo=UTC)
    )


def test_a_repository_is_listed_once_however_its_name_is_written(database: Database) -> None:
    with database.transaction() as connection:
        put_listed(connection, line("NumPy/NumPy"))
        put_listed(connection, line("astropy/astropy"))
        put_listed(connection, line("numpy/numpy", ListVerdict.ALLOW, "wanted"))
        found = listed(connection)
    assert list(found) == ["astropy/astropy", "numpy/numpy"]
    assert found["numpy/numpy"] == line("numpy/numpy", ListVerdict.ALLOW, "wanted")


def test_the_name_keeps_its_case_and_is_found_in_lower_case(database: Database) -> None:
    with database.transaction() as connection:
        put_listed(connection, line("NumPy/NumPy"))
        assert listed(connection) == {"numpy/numpy": line("NumPy/NumPy")}


def test_what_is_taken_off_is_gone_and_what_never_was_there_is_said(database: Database) -> None:
    with database.transaction() as connection:
        put_listed(connection, line("NumPy/NumPy"))
        assert remove_listed(connection, "numpy/NUMPY")
        assert not remove_listed(connection, "numpy/NUMPY")
        assert listed(connection) == {}


def test_a_name_that_could_never_match_is_refused(database: Database) -> None:
    with database.transaction() as connection:
        for name in ("numpy", "a/b#1", "https://github.com/a/b", "a/b*", ""):
            with pytest.raises(ConfigurationError, match="owner/repo"):
                put_listed(connection, line(name))
            with pytest.raises(ConfigurationError, match="owner/repo"):
                remove_listed(connection, name)
        assert listed(connection) == {}
