from __future__ import annotations

import pytest
from sqlalchemy import text

from formulacode_dagster.models.errors import BusyError, OutsideSystemError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.database import Database


@pytest.mark.slow
def test_two_runs_of_the_same_month_are_refused_by_name(database: Database) -> None:
    with (
        database.month_lock(Stage.IMAGES, "2026-02", "run-one"),
        pytest.raises(BusyError, match="run-one"),
        database.month_lock(Stage.IMAGES, "2026-02", "run-two"),
    ):
        pytest.fail("the second run got in")


@pytest.mark.slow
def test_a_holder_in_another_database_of_the_server_is_not_named(database: Database, empty_database_url: str) -> None:
    other = Database(empty_database_url)
    with (
        other.month_lock(Stage.IMAGES, "2026-02", "elsewhere"),
        database.month_lock(Stage.IMAGES, "2026-02", "ours"),
    ):
        with pytest.raises(BusyError, match="ours"), database.month_lock(Stage.IMAGES, "2026-02", "second"):
            pytest.fail("the second run got in")
        with pytest.raises(BusyError, match="elsewhere"), other.month_lock(Stage.IMAGES, "2026-02", "third"):
            pytest.fail("the third run got in")
    other.close()


def test_the_lock_is_free_again_afterwards_and_other_months_never_wait(database: Database) -> None:
    with database.month_lock(Stage.IMAGES, "2026-02", "a"), database.month_lock(Stage.IMAGES, "2026-01", "b"):
        pass
    with database.month_lock(Stage.IMAGES, "2026-02", "c"):
        pass


def test_a_lock_dies_with_its_connection(database: Database) -> None:
    with database.month_lock(Stage.IMAGES, "2026-02", "killed"):
        with database.transaction() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name ~ 'killed$'")
            )
        with database.month_lock(Stage.IMAGES, "2026-02", "next"):
            pass


def test_a_server_that_goes_away_in_the_middle_is_an_outside_system_error(database: Database) -> None:
    def work_on() -> None:
        with database.transaction() as connection:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            connection.execute(text("SELECT 1"))

    with pytest.raises(OutsideSystemError, match="does not answer"):
        work_on()
    with database.transaction() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1


def test_a_server_whose_disk_is_full_is_not_called_dead(database: Database) -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    with (
        pytest.raises(OutsideSystemError, match=r"out of resources: could not extend file\. Free disk space"),
        database.transaction() as connection,
    ):
        connection.execute(text(full))
