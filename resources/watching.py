"""How the platform is watched: what of it people look at, and where spans go, as the settings tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from formulacode_dagster.backups.backup import newest_backup
from formulacode_dagster.items.progress import ProgressListener
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.store.database import Database
from formulacode_dagster.synthesis.budgets import Limits, Scope
from formulacode_dagster.watching.operations import Budgets, Operations, Places, Runs, look

from .agents import AgentsResource
from .mirrors import MirrorsResource
from .settings import read_settings


def operations_now(database: Database, runs: Runs) -> Operations:
    """Queue, spending, disks, mirrors and backups; raises OutsideSystemError where a disk cannot be read."""
    settings = read_settings()
    agents = AgentsResource().limits.get(Scope.MONTH, Limits())
    budgets = Budgets(settings.llm_tokens_per_month, settings.llm_dollars_per_month, agents.tokens, agents.dollars)
    places = Places(settings.home, settings.mirrors_root, MirrorsResource().budget, newest_backup(settings.backup_root))
    try:
        with database.transaction() as connection:
            return look(connection, runs, budgets, places)
    except OSError as error:
        raise OutsideSystemError("disk", "cannot be read", why=str(error), remedy="Look at FC_HOME") from error


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
