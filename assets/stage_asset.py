"""Declares an asset of the month: its materialization, its inputs, and the checks of its rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg

from formulacode_dagster.models.columns import TableColumn
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.monitoring.alert import DUE_CRON
from formulacode_dagster.operating.runner.fingerprint import CODE_VERSIONS
from formulacode_dagster.operating.store.series.views import SERIES_RELATIONS
from formulacode_dagster.operating.store.views import RELATIONS

from .checks import MonthCheck, failures_within_budget

OWNER = "team:benchmarks"
MONTHLY = dg.FreshnessPolicy.cron(deadline_cron=DUE_CRON, lower_bound_delta=timedelta(days=3, hours=4), timezone="UTC")
"""Materialized between the start of the schedule `monthly` and the day on which a month is due, whichever it is."""


WITHIN_A_MONTH = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=35))
"""For assets without a schedule: some partition is materialized at least once a month."""


@dataclass(frozen=True)
class StageAsset:
    """An asset of the month: its materialization, the assets it reads, and the checks of its rows."""

    stage: Stage
    definition: dg.AssetsDefinition
    upstream: tuple[StageAsset, ...]
    checks: tuple[MonthCheck, ...]
    options: frozenset[str] = frozenset()
    """Names of the run options that the stage understands."""
    is_shared: bool = False
    """True if helper runs may work on its items too."""

    def config_of(self, options: RunOptions) -> dict[str, Any]:
        """Return the run config of the asset for *options*, without those that it does not understand."""
        return {"config": options.model_dump(mode="json", include=set(self.options))}

    @property
    def gates(self) -> tuple[tuple[Stage, str], ...]:
        """Checks that must have passed before this asset starts: stage and name of each blocking check.

        These are those of the assets it reads, and the failure budgets of everything upstream: items that were not
        taken in, or not built, are missing downstream.
        """
        before = {asset.stage: None for upstream in self.upstream for asset in upstream.before}
        budgets = [(stage, failures_within_budget.name) for stage in before]
        read = [(asset.stage, check.name) for asset in self.upstream for check in asset.checks if check.blocking]
        return tuple(dict.fromkeys([*budgets, *read]))

    @property
    def before(self) -> tuple[StageAsset, ...]:
        """Every asset that this one rests on, itself aside; the first of the graph first."""
        assets = [asset for upstream in self.upstream for asset in (*upstream.before, upstream)]
        return tuple({asset.stage: asset for asset in assets}.values())


def table_metadata(relation: str) -> dict[str, str]:
    """Return the name of the view or table that people query, if *relation* is one."""
    return {"dagster/table_name": f"public.{relation}"} if relation in RELATIONS.keys() | SERIES_RELATIONS else {}


def stage_asset(
    stage: Stage,
    *,
    partitions_def: dg.PartitionsDefinition[Any],
    group_name: str,
    kinds: set[str],
    description: str,
    columns: Sequence[TableColumn] = (),
    deps: Sequence[StageAsset] = (),
    after: Sequence[StageAsset] = (),
    checks: Sequence[MonthCheck] = (),
    pool: str | None = None,
    is_shared: bool = False,
    freshness: dg.FreshnessPolicy | None = None,
) -> Callable[[Callable[..., dg.MaterializeResult[Any]]], StageAsset]:
    """`@dg.asset`, and the policy of this platform: owner, code version, retries.

    *columns* are those of a row, if the asset is a table. The gates of *deps* are checked before the asset starts, not
    those of *after*: of these it reads only published results, which may come from another machine.
    """
    shown = [dg.TableColumn(column.name, column.type, description=column.description) for column in columns]
    define = dg.asset(
        name=stage.value,
        deps=[dependency.definition for dependency in (*deps, *after)],
        partitions_def=partitions_def,
        group_name=group_name,
        kinds=kinds,
        owners=[OWNER],
        description=description,
        code_version=CODE_VERSIONS[stage],
        metadata={"dagster/column_schema": dg.TableSchema(shown), **table_metadata(stage.value)} if shown else {},
        pool=pool,
        freshness_policy=freshness,
    )

    def declare(body: Callable[..., dg.MaterializeResult[Any]]) -> StageAsset:
        fields = inspect.signature(body).parameters["config"].annotation.model_fields
        options = frozenset(fields) & frozenset(RunOptions.model_fields)
        return StageAsset(stage, define(body), tuple(deps), tuple(checks), options, is_shared)

    return declare
