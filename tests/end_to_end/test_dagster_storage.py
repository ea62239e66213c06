"""Dagster's own storage: SQLite under `FC_HOME`, or the Postgres that `FC_DAGSTER_DATABASE_URL` names."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from assets.monthly_report import monthly_report
from tests.end_to_end.test_ui import processes_of
from tests.support.gates import open_gates
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MONTH = "2025-03"
PASSWORD = "correct-horse-battery"
RUNS = "{ runsOrError { ... on Runs { results { runId status } } } }"


@pytest.fixture
def settings(database, database_url) -> dict[str, str]:
    """A platform in which the report of an empty month can be made: the gates before it are open."""
    open_gates(database, monthly_report, MONTH)
    return {"FC_DATABASE_URL": database_url}


@pytest.fixture
def dagster_url(database, database_url):
    """Another database of the same server, in the form a user writes, with a password in it."""
    name = f"{make_url(database_url).database}_dagster"
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    url = make_url(database_url).set(drivername="postgresql", database=name, password=PASSWORD)
    yield url.render_as_string(hide_password=False)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))


def report(call_fc_data, **settings: str) -> str:
    """Run the report of an empty month; returns the run's id."""
    ran = call_fc_data("run", "--month", MONTH, "--stage", "monthly_report", **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"\(run ([0-9a-f-]{36})\)", ran.stdout)
    assert found is not None
    return found[1]


def runs_in_postgres(database, dagster_url) -> list[tuple[str, str]]:
    from sqlalchemy import create_engine

    engine = create_engine(make_url(dagster_url).set(drivername="postgresql+psycopg"))
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text("SELECT run_id, status FROM runs"))]
    finally:
        engine.dispose()


def processes_showing(word: str) -> list[str]:
    shown = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = cmdline.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in arguments:
            shown.append(arguments)
    return shown


def test_pools_and_runs_are_kept_in_the_postgres_that_the_setting_names(
    call_fc_data, tmp_path, settings, database, dagster_url
) -> None:
    pools = call_fc_data("pools", FC_DAGSTER_DATABASE_URL=dagster_url)
    assert pools.returncode == 0, pools.stdout + pools.stderr
    assert "measure: 1 (set now)" in pools.stdout
    again = call_fc_data("pools", FC_DAGSTER_DATABASE_URL=dagster_url)
    assert "measure: 1\n" in again.stdout
    run = report(call_fc_data, **settings, FC_DAGSTER_DATABASE_URL=dagster_url)
    assert (run, "SUCCESS") in runs_in_postgres(database, dagster_url)
    assert list((tmp_path / "home" / "dagster").rglob("*.db")) == []


@TAKES_MINUTES
def test_the_ui_serves_from_that_postgres_without_its_password(
    call_fc_data, new_home, settings, serve_ui, dagster_url
) -> None:
    run = report(call_fc_data, **settings, FC_DAGSTER_DATABASE_URL=dagster_url)
    with serve_ui(new_home, **settings, FC_DAGSTER_DATABASE_URL=dagster_url) as served:
        assert served.graphql(RUNS)["runsOrError"]["results"] == [{"runId": run, "status": "SUCCESS"}]
        assert processes_showing(PASSWORD) == []
        shown = served.graphql("{ instance { info } }")["instance"]["info"]
    assert served.process.returncode == 0, served.log.read_text()[-3000:]
    assert processes_of(new_home.home) == []
    assert PASSWORD not in shown
    written = [path for path in new_home.home.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert written == []
    assert "DAGSTER_DATABASE_URL_PSYCOPG2" in (new_home.home / "dagster" / "dagster.yaml").read_text()


def test_without_the_setting_runs_are_kept_in_sqlite_under_the_home(call_fc_data, tmp_path, settings) -> None:
    dagster = tmp_path / "home" / "dagster"
    run = report(call_fc_data, **settings)
    with sqlite3.connect(dagster / "history" / "runs.db") as connection:
        assert connection.execute("SELECT run_id, status FROM runs").fetchall() == [(run, "SUCCESS")]
    assert "postgres" not in (dagster / "dagster.yaml").read_text().partition("storage:")[2]


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (f"postgresql://u:{PASSWORD}@127.0.0.1:1/none", "Start it or fix FC_DAGSTER_DATABASE_URL"),
        (f"mysql://u:{PASSWORD}@127.0.0.1:1/none", "FC_DAGSTER_DATABASE_URL is not a Postgres URL"),
        (PASSWORD, "FC_DAGSTER_DATABASE_URL is not a Postgres URL"),
    ],
)
def test_a_postgres_that_cannot_be_used_is_one_clear_message(call_fc_data, url, complaint) -> None:
    refused = call_fc_data("pools", FC_DAGSTER_DATABASE_URL=url)
    assert refused.returncode == 1
    assert complaint in refused.stderr
    assert PASSWORD not in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr
