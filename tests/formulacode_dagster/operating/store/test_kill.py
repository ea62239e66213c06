from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import text

from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import merged_of
from formulacode_dagster.operating.store.windows import replace_window

SCRIPT = Path(__file__).with_name("write_window.py")
POINTS = {
    1: "SELECT pg_advisory_xact_lock",
    2: "DELETE FROM merged_pull_requests",
    3: "the middle of COPY",
    4: "INSERT INTO intake_counts",
    5: "CREATE TEMPORARY TABLE stage_ledger",
    6: "INSERT INTO ledger",
    7: "COMMIT",
}
"""Where each repository's writer is killed: at each step of the window, then of the ledger's COPY and merge."""
IN_COPY = 3
OLD, NEW, MANY = 250, 500, 3000
PATIENCE = 60


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_window", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wait_for_copy(database: Database) -> None:
    """Return while a COPY is under way: some rows have come in and it has not ended."""
    until = time.monotonic() + PATIENCE
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while time.monotonic() < until:
            rows = connection.execute(text("SELECT max(tuples_processed) FROM pg_stat_progress_copy")).scalar()
            if rows:
                return
            time.sleep(0.002)
    pytest.fail("no COPY was seen")


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.slow
def test_a_writer_killed_at_any_point_leaves_the_last_good_window(database: Database, writer: ModuleType) -> None:
    with database.transaction() as connection:
        before = {number: replace_window(connection, *writer.window(number, OLD, "an old text")) for number in POINTS}
    url = database.engine.url.render_as_string(hide_password=False)

    def start(number: int, size: int, point: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(SCRIPT), url, str(number), str(size), point]
        return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=SCRIPT.parents[4])

    waiting = [start(number, NEW, point) for number, point in POINTS.items() if number != IN_COPY]
    for process in waiting:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waits\n"
        kill(process)
    copying = start(IN_COPY, MANY, "")
    wait_for_copy(database)
    kill(copying)
    for number, old in before.items():
        with database.transaction() as connection:
            assert merged_of(connection, writer.MONTH, number) == writer.window(number, OLD, "an old text")[1]
            assert old in INTAKE_COUNTS.read(connection, writer.MONTH), POINTS[number]
            assert ledger.entries_of(connection, writer.MONTH) == []
    for number in POINTS:
        with database.transaction() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '30s'"))
            count, rows = writer.window(number, NEW, "a new text")
            taken = replace_window(connection, count, rows)
            assert (taken.added, taken.changed, taken.removed) == (NEW - OLD, OLD, 0)
            assert merged_of(connection, writer.MONTH, number) == rows
