"""The platform's settings, read when something needs them. A `.env` in the working directory counts, as everywhere."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.store.database import Database
from resources.settings import home, load_env_file, make_home, value_of


def github_url() -> str:
    """`GITHUB_API_URL`."""
    load_env_file()
    return value_of("GITHUB_API_URL")


def github_tokens() -> list[str]:
    """`GH_TOKENS`."""
    load_env_file()
    return value_of("GH_TOKENS").split(",")


def state_folder() -> Path:
    """`FC_HOME`, made where it is missing."""
    load_env_file()
    return make_home()


def mirrors() -> MirrorCache:
    """The mirrors of the platform, `FC_MIRRORS_DIR`."""
    load_env_file()
    folder = value_of("FC_MIRRORS_DIR")
    return MirrorCache(Path(folder) if folder else make_home() / "mirrors", value_of("GITHUB_CLONE_URL"))


def has_database() -> bool:
    """Whether there is one already: only looking something up is no reason to make one."""
    load_env_file()
    return bool(value_of("FC_DATABASE_URL")) or (home() / "postgres").exists()


def open_database(url: str = "") -> Database:
    """The database at *url*, else at `FC_DATABASE_URL`, else the embedded one under `FC_HOME`; up to date.

    Raises OutsideSystemError when it does not answer or start, ConfigurationError for a URL that is none.
    """
    load_env_file()
    url = url or value_of("FC_DATABASE_URL")
    if not url:
        from formulacode_dagster.store.embedded import start_embedded

        url = start_embedded(make_home() / "postgres")
    database = Database(url)
    database.migrate()
    return database
