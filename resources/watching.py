"""Settings for monitoring: the operations page, and the destination of traces."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

from formulacode_dagster.building.synthesis.budgets import Limits, Scope
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.backups.backup import newest_backup
from formulacode_dagster.operating.backups.object_store import ObjectStore
from formulacode_dagster.operating.monitoring.operations import (
    Budgets,
    MirrorUsage,
    Operations,
    PlatformFolders,
    RunCounts,
    look,
)
from formulacode_dagster.operating.runner.progress import ProgressListener
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.sources.git.eviction import kept_mirrors

from .agents import AgentsResource
from .mirrors import MirrorsResource
from .settings import Settings, read_settings

STORE_ASKED_SECONDS = 600
"""Between two questions to the store of backups: figures may be scraped every few seconds."""


def operations_now(database: Database, runs: RunCounts) -> Operations:
    """Queue, spending, disks, mirrors and backups.

    Raises OutsideSystemError if a disk cannot be read, ConfigurationError if FC_BACKUP_STORE cannot be used.
    """
    settings = read_settings()
    agents = AgentsResource().limits.get(Scope.MONTH, Limits())
    budgets = Budgets(settings.llm_tokens_per_month, settings.llm_dollars_per_month, agents.tokens, agents.dollars)
    try:
        kept = kept_mirrors(settings.mirrors_root)
        mirrors = MirrorUsage(len(kept), sum(it.bytes for it in kept), min((it.last_used for it in kept), default=None))
        places = PlatformFolders(settings.home, mirrors, MirrorsResource().budget, _newest_backup(settings))
        with database.transaction() as connection:
            return look(connection, runs, budgets, places)
    except OSError as error:
        raise OutsideSystemError("disk", "cannot be read", why=str(error), remedy="Look at FC_HOME") from error


def _newest_backup(settings: Settings) -> datetime | None:
    """Creation time of the newest, in any place: FC_BACKUP_DIR may be a disk of another machine."""
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
        # backups in the folder are reported anyway, and age if uploads fail
        return None


@contextmanager
def traced(listener: ProgressListener, run_id: str) -> Iterator[ProgressListener]:
    """*listener*, or one that also sends spans to OTEL_EXPORTER_OTLP_ENDPOINT; raises as `traces`."""
    endpoint = read_settings().otlp_endpoint
    if not endpoint:
        yield listener
        return
    from formulacode_dagster.operating.monitoring.traces import traces

    with traces(listener, run_id, endpoint) as watching:
        yield watching
