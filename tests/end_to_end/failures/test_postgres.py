"""Postgres goes away in the middle, or is half migrated: nothing is lost, and the next run continues."""

from __future__ import annotations

import os
import signal

import pytest
from sqlalchemy import text

from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store.migrations import migrate, read_migrations

pytestmark = [pytest.mark.slow, pytest.mark.variant("fault of Postgres in a month", most=2)]


def test_a_killed_embedded_postgres_recovers_all_stored_rows(own_platform) -> None:
    platform = own_platform
    with platform.serve(hold=("model", 4)) as served:
        with platform.started("run", "--month", "2026-02") as process:
            served.wait_until_held()
            postmaster = int((platform.home / "postgres" / "postmaster.pid").read_text().split()[0])
            os.kill(postmaster, signal.SIGKILL)
            served.release()
            said = platform.ended(process)
        assert not said.succeeded
        said.tells("postgres: ", "does not answer", "then run the month again: it continues where this run stopped")
        again = platform.fc_data("run", "--month", "2026-02", "--stage", "classifications")
        assert again.succeeded, again.text
    assert platform.states(Stage.CLASSIFICATIONS) == {ItemState.DONE: 14, ItemState.REJECTED: 8}
    assert platform.states(Stage.PULL_REQUESTS) == {ItemState.DONE: 22}


def test_a_server_that_refuses_connections_stops_the_stage(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
    name = platform.database.engine.url.database
    platform.close()
    with (
        platform.serve(hold=("model", 4)) as served,
        platform.started("run", "--month", "2026-02", "--stage", "classifications") as process,
    ):
        served.wait_until_held()
        platform.administer(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        platform.administer("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name", name=name)
        served.release()
        said = platform.ended(process)
    platform.administer(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert not said.succeeded
    said.tells("postgres: ", "does not answer", "FC_DATABASE_URL")
    assert len(said.complaints) <= 2
    with platform.serve():
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
    assert platform.states(Stage.CLASSIFICATIONS) == {ItemState.DONE: 14, ItemState.REJECTED: 8}


def test_a_server_that_is_not_there_is_one_message_without_its_password(seeded) -> None:
    platform = seeded()
    platform.settings["FC_DATABASE_URL"] = "postgresql://me:hushhush@127.0.0.1:9/formulacode"
    said = platform.run()
    assert not said.succeeded
    said.tells(
        "error: postgres: ", "me:***@127.0.0.1:9/formulacode", "does not answer", "Start it or fix FC_DATABASE_URL"
    )
    assert "hushhush" not in said.text
    assert len(said.complaints) == 1


def test_migrations_half_applied_are_finished_by_the_next_run(seeded, empty_database_url) -> None:
    platform = seeded()
    platform.settings["FC_DATABASE_URL"] = empty_database_url
    applied = migrate(platform.database.engine, read_migrations()[:1])
    assert len(applied) == 1
    with platform.serve():
        said = platform.run(Stage.REPOSITORIES)
    assert said.succeeded, said.text
    with platform.database.transaction() as connection:
        names = connection.execute(text("SELECT name FROM schema_migrations ORDER BY name")).scalars().all()
    assert names == [*(migration.name for migration in read_migrations()), "views"]


def test_a_database_ahead_of_the_checkout_is_refused_by_name(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    with platform.database.transaction() as connection:
        connection.execute(text("INSERT INTO schema_migrations (name, checksum) VALUES ('9999_later.sql', 'x')"))
    with platform.serve():
        said = platform.run(Stage.PULL_REQUESTS)
    assert not said.succeeded
    said.tells("the database is ahead of this checkout", "9999_later.sql", "Update the checkout")
