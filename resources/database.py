"""The one way to the platform's database."""

from __future__ import annotations

from formulacode_dagster.operating.store.database import Database, ServerLimits

from .settings import Settings, read_settings


def has_database() -> bool:
    """Return True if there is one already: a lookup should not create one."""
    settings = read_settings()
    return bool(settings.database_url.get_secret_value()) or (settings.home / "postgres").exists()


def open_database(url: str = "", *, settings: Settings | None = None, migrated: bool = True) -> Database:
    """The database at *url*, else at `FC_DATABASE_URL`, else the embedded one under `FC_HOME`.

    It is migrated if *migrated*; close it after use. Raises OutsideSystemError if it does not answer or start,
    ConfigurationError for an invalid URL.
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
        transaction_pooling=settings.database_transaction_pooling,
    )
    database = Database(url, limits)
    if migrated:
        try:
            database.migrate()
        except BaseException:
            database.close()
            raise
    return database
