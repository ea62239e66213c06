"""Dagster's own home under `FC_HOME`: the checked-in `dagster.yaml`, with Postgres added where a URL is set."""

from __future__ import annotations

import os
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from resources.settings import home, value_of

ROOT = Path(__file__).parents[1]
_POSTGRES = "\nstorage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_DATABASE_URL_PSYCOPG2\n"
POOLS = {"github": 2, "llm": 2, "build": 1, "measure": 1}
"""Runs that may use each outside system at the same time; `measure` is 1 so that nothing disturbs a timing."""


def prepare_dagster_home() -> Path:
    """Write `$FC_HOME/dagster/dagster.yaml`, set DAGSTER_HOME, and return the folder.

    Raises ConfigurationError when the folder cannot be written.
    """
    folder = home() / "dagster"
    text = (ROOT / "dagster.yaml").read_text(encoding="utf-8")
    url = value_of("FC_DAGSTER_DATABASE_URL")
    if url:
        text += _POSTGRES
        # dagster-postgres speaks psycopg2, while SQLAlchemy 2.1 would take a bare postgresql:// for psycopg 3
        _, _, rest = url.partition("://")
        os.environ["DAGSTER_DATABASE_URL_PSYCOPG2"] = f"postgresql+psycopg2://{rest}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "dagster.yaml"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            partial = folder / f"dagster.yaml.{os.getpid()}"
            partial.write_text(text, encoding="utf-8")
            partial.replace(target)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {folder}", why=str(error), remedy="Free disk space, fix its permissions, or set FC_HOME"
        ) from error
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder
