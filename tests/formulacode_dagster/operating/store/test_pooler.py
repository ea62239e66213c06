"""Through PgBouncer in transaction mode, from Debian: each transaction may be on another connection."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from formulacode_dagster.models.errors import BusyError
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database, ServerLimits

LIMITS = ServerLimits(statement_seconds=60, lock_seconds=30, idle_seconds=600, transaction_pooling=True)
CONNECTIONS = 4
"""Connections of the pooler to the server: fewer than its clients."""
PATIENCE_SECONDS = 60


@pytest.fixture
def pooled_url(empty_database_url: str) -> Iterator[str]:
    """The same empty database, behind a pooler of this test's own."""
    program = shutil.which("pgbouncer")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no pgbouncer in CI; .ci/install-pgbouncer installs it")
        pytest.skip("no pgbouncer; run .ci/install-pgbouncer")
    url = make_url(empty_database_url)
    sockets = Path(str(url.query["host"]))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # the pooler runs as the owner of the server's socket, who cannot look into a folder of root's
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        config = Path(scratch) / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={sockets} user={url.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\nlogfile =\n"
        )
        config.chmod(0o644)
        owner = ["-u", sockets.owner()] if os.geteuid() == 0 else []
        child = subprocess.Popen(
            [program, "-q", *owner, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        pooled = url.set(host="127.0.0.1", port=port, query={})
        try:
            _wait_for(Database(pooled.render_as_string(hide_password=False), LIMITS).engine, child)
            yield pooled.render_as_string(hide_password=False)
        finally:
            child.terminate()
            child.wait()


def _wait_for(engine: Engine, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            engine.connect().close()
        except OperationalError:
            assert child.poll() is None, "the pooler has ended"
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            engine.dispose()
            return


@pytest.mark.slow
def test_migrations_locks_limits_and_statements_work_behind_a_pooler(
    pooled_url: str,
) -> None:
    first, second = Database(pooled_url, LIMITS), Database(pooled_url, LIMITS)
    assert first.migrate()
    assert second.migrate() == ()
    with first.month_lock(Stage.IMAGES, "2026-02", "run-one"), first.lease("core 1"):
        with pytest.raises(BusyError, match="run-one"), second.month_lock(Stage.IMAGES, "2026-02", "run-two"):
            pytest.fail("the second run got in")
        for number in range(20):
            for database in (first, second):
                with database.transaction() as connection:
                    entry = LedgerEntry(stage=Stage.IMAGES, month="2026-02", item=f"a/b#{number}", state=ItemState.DONE)
                    ledger.record(connection, [entry])
                    shown = connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar_one()
                    assert shown == "10min"
        with second.lease("core 1") as ours:
            assert not ours
    with second.month_lock(Stage.IMAGES, "2026-02", "run-three"), second.lease("core 1") as ours:
        assert ours
    with first.transaction() as connection:
        assert len(ledger.items_in_state(connection, "2026-02", Stage.IMAGES, ItemState.DONE)) == 20
    first.close()
    second.close()
