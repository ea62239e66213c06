"""The one way to the platform's database."""

from __future__ import annotations

from formulacode_dagster.operating.store.database import Database, ServerLimits

from .settings import Settings, read_settings


def has_database() -> bool:
    """Whether there is one already: only looking something up is no reason to make one."""
    settings = read_settings()
    return bool(settings.database_url.get_secret_value()) or (settings.home / "postgres").exists()


def open_database(url: str = "", *, settings: Settings | None = None, migrated: bool = True) -> Database:
    """The database at *url*, else at `FC_DATABASE_URL`, else the embedded one under `FC_HOME`.

    It is brought up to date where *migrated*; close it after use. Raises OutsideSystemError when it does not answer or
    start, ConfigurationError for a URL that is none.
    """
    settings = settings or read_settings()
    url = url or settings.database_url.get_secret_value()
    if not url:
        from formulacode_dagster.operating.store.embedded import start_embedded

        url = start_embedded(settings.home / "postgres")
    limits = ServerLimits(
        connections=settings.database_connections,
        statement_seconds=settings.database_statement_seconds,
        lock_seconds=settings.database_lock_seconds,
        idle_seconds=settings.database_idle_seconds,
        behind_pooler=settings.database_behind_pooler,
    )
    database = Database(url, limits)
    if migrated:
        try:
            database.migrate()
        except BaseException:
            database.close()
            raise
    return database
