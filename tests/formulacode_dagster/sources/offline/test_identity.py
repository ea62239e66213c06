"""One repository, one id a month, whichever source was asked first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import items_by_key
from formulacode_dagster.operating.store.windows import save_windows
from formulacode_dagster.sources.offline.identity import derived_id, settle
from tests.formulacode_dagster.sources.offline.test_export import repository, row, window

MONTH = "2026-02"
STAND_IN = repository("ada/engine")
REAL = repository("Ada/Engine", id=12, node_id="R_12")


def take_in(connection: Connection, found: Repository) -> Repository:
    """Effect of a materialization on a repository and its one pull request."""
    (settled,) = settle(connection, MONTH, [found])
    REPOSITORIES.replace_month(connection, MONTH, [settled])
    save_windows(connection, [window(settled, row(settled, 7))])
    return settled


def held(connection: Connection) -> tuple[dict[tuple[int, int], str], list[int]]:
    return items_by_key(connection, MONTH), [count.repository_id for count in INTAKE_COUNTS.read(connection, MONTH)]


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,8}/[A-Za-z0-9._-]{1,8}", fullmatch=True))
def test_a_derived_id_is_negative_fits_a_double_and_knows_no_case(name):
    assert -(2**52) <= derived_id(name) <= -1
    assert derived_id(name) == derived_id(name.upper()) == derived_id(name.lower())


def test_a_derived_id_never_changes():
    assert derived_id("networkx/networkx") == -2750748660539039


def test_offline_first_and_github_later_holds_every_pull_request_once(database: Database):
    with database.transaction() as connection:
        take_in(connection, STAND_IN)
        assert held(connection) == ({(STAND_IN.id, 7): "ada/engine#7"}, [STAND_IN.id])
        take_in(connection, REAL)
        assert held(connection) == ({(12, 7): "Ada/Engine#7"}, [12])


def test_github_first_and_offline_later_keeps_the_id(database: Database):
    with database.transaction() as connection:
        take_in(connection, REAL)
        settled = take_in(connection, STAND_IN)
        assert (settled.id, settled.node_id) == (12, "R_12")
        assert held(connection) == ({(12, 7): "Ada/Engine#7"}, [12])


def test_an_id_learnt_in_another_month_or_under_a_former_name_is_kept(database: Database):
    with database.transaction() as connection:
        renamed = repository("ada/motor", id=12, aliases=("ada/engine",), month="2025-11")
        REPOSITORIES.replace_month(connection, "2025-11", [renamed])
        assert [repository.id for repository in settle(connection, MONTH, [STAND_IN])] == [12]
        REPOSITORIES.replace_month(connection, "2025-12", [repository("ada/engine", id=99, month="2025-12")])
        assert [repository.id for repository in settle(connection, MONTH, [STAND_IN])] == [99]


def test_a_stand_in_under_a_former_name_gives_way_too(database: Database):
    with database.transaction() as connection:
        take_in(connection, STAND_IN)
        settle(connection, MONTH, [repository("ada/motor", id=12, aliases=("ada/engine",))])
        assert held(connection) == ({}, [])


def test_another_month_keeps_its_stand_in(database: Database):
    with database.transaction() as connection:
        take_in(connection, STAND_IN)
        settle(connection, "2026-03", [REAL])
        assert held(connection)[1] == [STAND_IN.id]


def test_two_names_of_one_repository_are_refused(database: Database):
    with database.transaction() as connection:
        REPOSITORIES.replace_month(connection, MONTH, [repository("ada/motor", id=12, aliases=("ada/engine",))])
        with pytest.raises(ConfigurationError, match=r"ada/motor and ada/engine are the same repository.*alias"):
            settle(connection, MONTH, [repository("ada/motor"), STAND_IN])


@pytest.mark.parametrize("state", [RepositoryState.VANISHED, RepositoryState.PRIVATE])
def test_a_dead_name_of_a_found_repository_becomes_its_alias(database: Database, state: RepositoryState):
    found, dead = repository("ada/motor", id=12, node_id="R_12"), repository("ada/engine", state=state)
    with database.transaction() as connection:
        REPOSITORIES.replace_month(connection, "2026-01", [repository("ada/engine", id=12, month="2026-01")])
        for rows in ([dead, found], [found, dead, repository("ADA/engine", state=RepositoryState.VANISHED)]):
            (settled,) = settle(connection, MONTH, rows)
            assert (settled.full_name, settled.id, settled.state) == ("ada/motor", 12, RepositoryState.ACTIVE)
            assert [alias.lower() for alias in settled.aliases] == ["ada/engine"]


def test_two_dead_names_of_one_repository_are_one_row(database: Database):
    dead = [repository(name, state=RepositoryState.VANISHED) for name in ("ada/engine", "ada/motor")]
    with database.transaction() as connection:
        known = repository("ada/motor", id=12, aliases=("ada/engine",), month="2026-01")
        REPOSITORIES.replace_month(connection, "2026-01", [known])
        (settled,) = settle(connection, MONTH, dead)
    assert (settled.full_name, settled.aliases) == ("ada/engine", ("ada/motor",))


def test_a_renamed_repository_keeps_the_name_of_its_window(database: Database):
    renamed = repository("bob/motor", id=12, aliases=("ada/first",))
    with database.transaction() as connection:
        take_in(connection, REAL)
        settled = take_in(connection, renamed)
        assert (settled.full_name, settled.aliases) == ("Ada/Engine", ("ada/first", "bob/motor"))
        assert held(connection) == ({(12, 7): "Ada/Engine#7"}, [12])
        (elsewhere,) = settle(connection, "2026-03", [renamed])
        assert elsewhere == renamed
        both = [renamed, repository("ada/engine", id=13, state=RepositoryState.FORK)]
        assert settle(connection, MONTH, both) == tuple(both), "two items of one name would be one"
