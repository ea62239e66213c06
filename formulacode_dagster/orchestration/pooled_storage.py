"""Dagster's storage in Postgres, over connections that a process keeps.

Dagster's own (1.13) opens one for each statement, and a run that is queued announces each of its assets and checks by
events of their own: 41 here, of two or three connections each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import QueuePool

KEPT_CONNECTIONS = 1
"""Connections kept open between statements; parallel threads open more, and close them."""
RECYCLED_SECONDS = 300
"""Age at which a connection is replaced: one dropped silently by a firewall would never answer."""


class PooledPostgresStorage(DagsterPostgresStorage):
    """Dagster's, with one pool for all storages of a process; a connection that is dead is replaced before its use.

    The read-only web server replaces the pools by its own: a request may meet a dead connection there.
    """

    def __init__(self, postgres_url: str, *given: Any, **named: Any) -> None:
        super().__init__(postgres_url, *given, **named)
        # Dagster has no setting for it; dagster-webserver replaces engines here too
        for storage in (self._run_storage, self._event_log_storage, self._schedule_storage):
            storage._engine = engine_of(postgres_url)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> PooledPostgresStorage:
        """As in `dagster.yaml`: the options of Dagster's storage, but with tokens in place of a password."""
        return cls(pg_url_from_config(config_value), config_value.get("should_autocreate_tables", True), inst_data)


@cache
def engine_of(postgres_url: str) -> Engine:
    """The only one of a process for *postgres_url*: instances come and go with the ticks of sensors."""
    return create_engine(
        postgres_url,
        isolation_level="AUTOCOMMIT",
        poolclass=QueuePool,
        pool_size=KEPT_CONNECTIONS,
        max_overflow=-1,
        pool_pre_ping=True,
        pool_recycle=RECYCLED_SECONDS,
    )
