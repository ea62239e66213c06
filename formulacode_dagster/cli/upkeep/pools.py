"""`fc-data pools`: the limits of Dagster's pools."""

from __future__ import annotations

from formulacode_dagster.cli.console import console


def pools() -> None:
    """Set the limits of Dagster's pools, which dagster.yaml cannot hold."""
    from formulacode_dagster.orchestration.home import POOLS
    from formulacode_dagster.orchestration.runs import dagster_instance, set_pools

    with dagster_instance() as instance:
        changed = set_pools(instance)
    for name, limit in POOLS.items():
        console.print(f"{name}: {limit}{' (set now)' if name in changed else ''}")
