"""`fc-data pools`: the limits of Dagster's pools."""

from __future__ import annotations

from formulacode_dagster.cli.console import console
from resources.setting_types import POOLS


def pools() -> None:
    """Set the limits of Dagster's pools, which dagster.yaml cannot hold."""
    from formulacode_dagster.orchestration.runs import dagster_instance, set_pools

    with dagster_instance() as instance:
        changed = set_pools(instance)
        limits = {info.name: info.limit for info in instance.event_log_storage.get_pool_limits()}
    for name in POOLS:
        console.print(f"{name}: {limits[name]}{' (set now)' if name in changed else ''}")
