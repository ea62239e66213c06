"""What the server is asked to keep to, with a pooler between and without."""

from __future__ import annotations

import pytest
from sqlalchemy import event, text

from formulacode_dagster.models.errors import BusyError, ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.store.database import Database, ServerLimits

NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


def shown(database: Database) -> list[str]:
    with database.transaction() as connection:
        return [connection.execute(text(f"SHOW {name}")).scalar_one() for name in NAMES]


@pytest.mark.parametrize("behind_pooler", [False, True])
def test_the_server_is_told_its_limits(database_url: str, behind_pooler: bool) -> None:
    limits = ServerLimits(statement_seconds=7, lock_seconds=11, idle_seconds=13, behind_pooler=behind_pooler)
    database = Database(database_url, limits)
    assert shown(database) == ["7s", "11s", "13s"]
    assert shown(database) == ["7s", "11s", "13s"], "each transaction anew"
    database.close()


def test_without_limits_they_are_the_servers_own(database: Database, database_url: str) -> None:
    other = Database(database_url, ServerLimits(behind_pooler=True))
    assert shown(other) == shown(database)
    other.close()


def test_a_statement_that_takes_longer_is_ended(database_url: str) -> None:
    database = Database(database_url, ServerLimits(statement_seconds=1))
    with pytest.raises(OutsideSystemError, match="statement timeout"), database.transaction() as connection:
        connection.execute(text("SELECT pg_sleep(60)"))
    database.close()


def test_more_connections_than_may_be_are_refused_by_name(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(database_url, ServerLimits(connections=1))
    monkeypatch.setattr(database.engine.pool, "_timeout", 0.01)
    with (
        database.transaction(),
        pytest.raises(ConfigurationError, match="Raise FC_DATABASE_CONNECTIONS"),
        database.transaction(),
    ):
        pytest.fail("a second connection")
    database.close()


def test_a_lock_is_that_of_a_transaction_which_a_pooler_keeps_a_connection_for(database: Database) -> None:
    holders = text(
        "SELECT a.state FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
    asked: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *of: asked.append(of[2]))
    with database.month_lock(Stage.IMAGES, "2026-02", "run"), database.lease("core 1") as ours:
        assert ours
        assert asked.count("SET LOCAL idle_in_transaction_session_timeout = 0") == 2, "nor does the server end it"
        with database.transaction() as connection:
            assert connection.execute(holders).scalars().all() == ["idle in transaction"] * 2
        with database.lease("core 1") as theirs:
            assert not theirs
        with pytest.raises(BusyError), database.month_lock(Stage.IMAGES, "2026-02", "other"):
            pytest.fail("the other got in")
    with database.transaction() as connection:
        assert connection.execute(holders).scalars().all() == []
