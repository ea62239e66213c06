"""How the platform is watched: what of it people look at, and where spans go, as the settings tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

from formulacode_dagster.backups.backup import newest_backup
from formulacode_dagster.backups.object_store import ObjectStore
from formulacode_dagster.items.progress import ProgressListener
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.store.database import Database
from formulacode_dagster.synthesis.budgets import Limits, Scope
from formulacode_dagster.watching.operations import Budgets, Operations, Places, Runs, look

from .agents import AgentsResource
from .mirrors import MirrorsResource
from .settings import Settings, read_settings

STORE_ASKED_SECONDS = 600
"""Between two questions to the store of backups: figures may be scraped every few seconds."""


def operations_now(database: Database, runs: Runs) -> Operations:
    """Queue, spending, disks, mirrors and backups.

    Raises OutsideSystemError where a disk cannot be read, ConfigurationError where FC_BACKUP_STORE cannot be used.
    """
    settings = read_settings()
    agents = AgentsResource().limits.get(Scope.MONTH, Limits())
    budgets = Budgets(settings.llm_tokens_per_month, settings.llm_dollars_per_month, agents.tokens, agents.dollars)
    places = Places(settings.home, settings.mirrors_root, MirrorsResource().budget, _newest_backup(settings))
    try:
        with database.transaction() as connection:
            return look(connection, runs, budgets, places)
    except OSError as error:
        raise OutsideSystemError("disk", "cannot be read", why=str(error), remedy="Look at FC_HOME") from error


def _newest_backup(settings: Settings) -> datetime | None:
    """When the newest was made, wherever it lies: FC_BACKUP_DIR may be a disk of another machine's."""
    found = [newest_backup(settings.backup_root)]
    if settings.backup_store:
        turn = int(time.time() // STORE_ASKED_SECONDS)
        found.append(_newest_in(settings.backup_store, settings.backup_endpoint, turn))
    return max((moment for moment in found if moment is not None), default=None)


@lru_cache(maxsize=1)
def _newest_in(store: str, endpoint: str, _turn: int) -> datetime | None:
    try:
        return ObjectStore.of(store, endpoint).newest()
    except OutsideSystemError:
        # what is in the folder is told all the same, and grows old where nothing can be uploaded
        return None


@contextmanager
def traced(listener: ProgressListener, run_id: str) -> Iterator[ProgressListener]:
    """*listener*, or one that also sends spans to OTEL_EXPORTER_OTLP_ENDPOINT; raises as `traces`."""
    endpoint = read_settings().otlp_endpoint
    if not endpoint:
        yield listener
        return
    from formulacode_dagster.watching.traces import traces

    with traces(listener, run_id, endpoint) as watching:
        yield watching
