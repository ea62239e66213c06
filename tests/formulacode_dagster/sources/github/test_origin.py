"""The months of a database are from one GitHub, on record or by what can be known."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.repository import RepositoryState
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.repositories import recorded_github
from formulacode_dagster.sources.github.origin import SAMPLE, SAMPLE_IDS, record_same_github, require_same_github
from formulacode_dagster.sources.github.transport.addresses import LOCAL, PUBLIC
from sandbox.samples.catalog import repositories as samples
from tests.support.github import repository

NAMES = [sample.name for sample in samples()]


def keep(database: Database, id_: int, name: str, state: RepositoryState = RepositoryState.ACTIVE) -> None:
    with database.transaction() as connection:
        REPOSITORIES.save(connection, [repository(id=id_, full_name=name, state=state)])


def test_the_sample_is_one_that_the_demo_has() -> None:
    assert SAMPLE in {(sample.id, sample.name) for sample in samples()}
    assert {sample.id for sample in samples()} == SAMPLE_IDS


@pytest.mark.parametrize(("first", "second"), [(LOCAL, PUBLIC), (PUBLIC, LOCAL), (PUBLIC, "git.corp.example")])
def test_months_of_another_github_are_refused_from_the_first_repository_on(
    database: Database, first: str, second: str
) -> None:
    with database.transaction() as connection:
        record_same_github(connection, first)
        # a run that found nothing records nothing
        record_same_github(connection, second)
        assert recorded_github(connection) == ""
    keep(database, 1, "demo/project")
    with database.transaction() as connection:
        record_same_github(connection, first)
        require_same_github(connection, first)
        for check in (require_same_github, record_same_github):
            with pytest.raises(ConfigurationError, match=rf"has months of {first}.*another FC_HOME for {second}"):
                check(connection, second)
        assert recorded_github(connection) == first


def test_a_home_without_a_record_is_known_by_the_demos_samples(database: Database) -> None:
    keep(database, *SAMPLE)
    with database.transaction() as connection:
        with pytest.raises(ConfigurationError, match="the demo's"):
            record_same_github(connection, PUBLIC)
        for host in (LOCAL, "sandbox"):
            require_same_github(connection, host, NAMES)
        record_same_github(connection, "sandbox")
        assert recorded_github(connection) == "sandbox"


def test_a_home_without_a_record_with_other_repositories_is_not_the_demos(database: Database) -> None:
    # looked up in vain
    keep(database, -7, "numpy/numpy", RepositoryState.VANISHED)
    with database.transaction() as connection:
        require_same_github(connection, LOCAL, NAMES)
    keep(database, 7, "numpy/numpy")
    with database.transaction() as connection:
        require_same_github(connection, LOCAL)
        with pytest.raises(ConfigurationError, match="numpy/numpy"):
            require_same_github(connection, LOCAL, NAMES)


def test_a_home_without_a_record_with_samples_and_others_continues_with_either(database: Database) -> None:
    keep(database, *SAMPLE)
    keep(database, 7, "numpy/numpy")
    with database.transaction() as connection:
        require_same_github(connection, LOCAL, NAMES)
        record_same_github(connection, PUBLIC)
        assert recorded_github(connection) == PUBLIC


@pytest.mark.parametrize(("kept", "host"), [(SAMPLE, PUBLIC), ((7, "numpy/numpy"), LOCAL)])
@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_remedy_names_a_statement_that_works(
    database: Database, kept: tuple[int, str], host: str, is_recorded: bool
) -> None:
    keep(database, *kept)
    with database.transaction() as connection:
        if is_recorded:
            record_same_github(connection, "git.corp.example")
        with pytest.raises(ConfigurationError) as refused:
            require_same_github(connection, host, NAMES if host == LOCAL else ())
        (statements,) = re.findall(r"DELETE FROM .*now\(\)\)", str(refused.value))
        for statement in statements.split("; "):
            connection.execute(text(statement))
        require_same_github(connection, host, NAMES if host == LOCAL else ())
