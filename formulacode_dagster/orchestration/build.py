"""Assembles the `Definitions`. Tests and the command line override resources here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg


def ignore_beta_warnings() -> None:
    """Ignore what Dagster says of its own use of its beta features: for processes of ours, not for importers."""
    warnings.filterwarnings("ignore", category=dg.BetaWarning)


def build_definitions(*, resource_overrides: Mapping[str, Any] | None = None) -> dg.Definitions:
    """A fresh `Definitions` with every asset, check, job and schedule; opens nothing and needs no secret."""
    from assets.all import ASSET_CHECKS, ASSETS
    from resources.defaults import default_resources

    from .jobs import (
        BACKUP_JOB,
        DASHBOARD_JOB,
        HELPER_JOB,
        HOUSEKEEPING_JOB,
        MONTH_JOB,
        SCHEDULES,
        SENSORS,
        STAGE_JOBS,
    )
    from .operations import OPERATIONS_JOB, operations
    from .pool_waiting import mend_waiting_for_pools

    mend_waiting_for_pools()
    return dg.Definitions(
        assets=dg.with_source_code_references([*ASSETS, operations]),
        asset_checks=ASSET_CHECKS,
        jobs=[MONTH_JOB, *STAGE_JOBS, DASHBOARD_JOB, HOUSEKEEPING_JOB, HELPER_JOB, BACKUP_JOB, OPERATIONS_JOB],
        schedules=SCHEDULES,
        sensors=SENSORS,
        resources={**default_resources(), **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )
