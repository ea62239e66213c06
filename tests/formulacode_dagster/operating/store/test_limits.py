"""Limits of the server, with and without a pooler."""

from __future__ import annotations

import pytest
from sqlalchemy import event, text

from formulacode_dagster.models.errors import BusyError, ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.database import GONE_SECONDS, Database, ServerLimits

NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


def shown(database: Database) -> list[str]:
    with database.transaction() as connection:
        return [connection.execute(text(f"SHOW {name}")).scalar_one() for name in NAMES]


@pytest.mark.parametrize("transaction_pooling", [False, True])
def test_the_server_is_told_its_limits(database_url: str, transaction_pooling: bool) -> None:
    limits = ServerLimits(
        statement_seconds=7, lock_seconds=11, idle_seconds=13, transaction_pooling=transaction_pooling
    )
    database = Database(database_url, limits)
    assert shown(database) == ["7s", "11s", "13s"]
    assert shown(database) == ["7s", "11s", "13s"], "each transaction anew"
    database.close()


def test_without_limits_they_are_the_servers_own(database: Database, database_url: str) -> None:
    other = Database(database_url, ServerLimits(transaction_pooling=True))
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


def test_a_lock_belongs_to_a_transaction_on_one_pooled_connection(database: Database) -> None:
    holders = text(
        "SELECT a.state FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
    asked: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *of: asked.append(of[2]))
    with database.month_lock(Stage.IMAGES, "2026-02", "run"), database.lease("core 1") as ours:
        assert ours
        assert sum("idle_in_transaction_session_timeout', '0'" in it for it in asked) == 2, "nor does the server end it"
        assert sum("tcp_user_timeout', '60s'" in it for it in asked) == 2, "unless our machine is gone"
        with database.transaction() as connection:
            assert connection.execute(holders).scalars().all() == ["idle in transaction"] * 2
        with database.lease("core 1") as theirs:
            assert not theirs
        with pytest.raises(BusyError), database.month_lock(Stage.IMAGES, "2026-02", "other"):
            pytest.fail("the other got in")
    with database.transaction() as connection:
        assert connection.execute(holders).scalars().all() == []


def test_server_and_client_both_send_keepalives(database: Database) -> None:
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
    # shown are those of the socket, and a Unix socket has none
    kept = text("SELECT source, reset_val FROM pg_settings WHERE name = :name")
    with database.transaction() as connection:
        told = [tuple(connection.execute(kept, {"name": name}).one()) for name in names]
        ours = connection.connection.driver_connection.info.get_parameters()
    assert told == [("client", "30"), ("client", "10"), ("client", "3")]
    assert [ours[name.removeprefix("tcp_")] for name in names] == ["30", "10", "3"]
    assert GONE_SECONDS == 60
