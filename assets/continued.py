"""Which runs did what a run goes on with: those it repeats because they did not succeed, and who helped them."""

from __future__ import annotations

import dagster as dg

from formulacode_dagster.models.items import Stage

HELPS = "formulacode/helps"
"""Tag of a helper run: the stage, the month and the run that it helps."""


def helped(stage: Stage, month: str, run_id: str) -> str:
    """What `HELPS` says of the runs that help *run_id* with *stage* of *month*."""
    return f"{stage} {month} {run_id}"


def continued_runs(instance: dg.DagsterInstance, run: dg.DagsterRun, stage: Stage, month: str) -> frozenset[str]:
    """Ids of the runs whose work on *stage* of *month* is that of *run* too, its own among them.

    What repeats a run that succeeded begins anew.
    """
    chain = [run.run_id]
    earlier = run.parent_run_id
    while earlier and (before := instance.get_run_by_id(earlier)) and before.status is not dg.DagsterRunStatus.SUCCESS:
        chain.append(earlier)
        earlier = before.parent_run_id
    names = [helped(stage, month, run_id) for run_id in chain]
    helpers = instance.get_runs(dg.RunsFilter(tags={HELPS: names}))
    return frozenset([*chain, *(helper.run_id for helper in helpers)])
