"""Dagster's own home under `FC_HOME`: the checked-in `dagster.yaml`, plus Postgres if a URL is set."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.files.atomic import private_folder, write_atomically
from formulacode_dagster.operating.files.shipped import shipped
from resources.settings import read_settings

CONNECT_SECONDS = 10
_POSTGRES = """
storage:
  custom:
    module: formulacode_dagster.orchestration.pooled_storage
    class: PooledPostgresStorage
    config:
      postgres_url: {env: DAGSTER_DATABASE_URL_PSYCOPG2}
"""
IN_PROCESS = "in_process.yaml"
"""The same configuration for in-process runs: their output is not captured."""
# Dagster's capture redirects it into separate files, by four more processes per step
_NO_CAPTURE = """
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""
WAIT_FOR_CODE = {"DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR": "1"}
"""Environment of a daemon: a backfill waits for a code location that is cut off, in place of failing for good."""


def prepare_dagster_home() -> Path:
    """Write `$FC_HOME/dagster/dagster.yaml` and `in_process.yaml`, set DAGSTER_HOME, and return the folder.

    Raises ConfigurationError when the folder cannot be written or FC_DAGSTER_DATABASE_URL is no Postgres URL,
    OutsideSystemError when that Postgres does not answer.
    """
    settings = read_settings()
    folder = settings.home / "dagster"
    text = shipped("dagster.yaml").read_text(encoding="utf-8")
    if url := settings.dagster_database_url.get_secret_value():
        text += _POSTGRES
        os.environ["DAGSTER_DATABASE_URL_PSYCOPG2"] = _answering(url)
    try:
        private_folder(folder)
        for name, content in (("dagster.yaml", text), (IN_PROCESS, text + _NO_CAPTURE)):
            target = folder / name
            if not target.exists() or target.read_text(encoding="utf-8") != content:
                write_atomically(target, content.encode())
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {folder}", why=str(error), remedy="Free disk space, fix its permissions, or set FC_HOME"
        ) from error
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def _answering(url: str) -> str:
    """*url* for psycopg2, once its server has answered: Dagster would retry, and then show a traceback."""
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, OperationalError

    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or not parsed.drivername.startswith("postgres"):
        raise ConfigurationError(
            "FC_DAGSTER_DATABASE_URL is not a Postgres URL",
            remedy="Write postgresql://user:password@host:port/name, or leave it empty for SQLite",
        )
    # dagster-postgres speaks psycopg2, while SQLAlchemy 2.1 would take a bare postgresql:// for psycopg 3
    parsed = parsed.set(drivername="postgresql+psycopg2")
    engine = create_engine(parsed, connect_args={"connect_timeout": CONNECT_SECONDS})
    try:
        engine.connect().close()
    except OperationalError as error:
        raise OutsideSystemError(
            "postgres",
            f"{parsed.render_as_string(hide_password=True)} does not answer",
            why=str(error.orig).strip().splitlines()[0],
            remedy="Start it or fix FC_DAGSTER_DATABASE_URL; empty means SQLite under FC_HOME",
        ) from error
    finally:
        engine.dispose()
    return parsed.render_as_string(hide_password=False)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn a failure of Dagster's own storage into OutsideSystemError; ours speaks for itself."""
    try:
        yield
    except DBAPIError as error:
        raise _storage_gone(str(error.orig or error)) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _storage_gone(str(error)) from error


def _storage_gone(why: str) -> OutsideSystemError:
    settings = read_settings()
    on_server = bool(settings.dagster_database_url.get_secret_value())
    where = "the server in FC_DAGSTER_DATABASE_URL" if on_server else str(settings.home / "dagster")
    return OutsideSystemError(
        "Dagster's storage",
        f"{where} cannot be read or written",
        why=why.strip().splitlines()[0],
        remedy="Free disk space there or start the server, then run the month again: it continues",
    )
