"""The month as Dagster knows it: one partition per closed month, the key as everywhere else."""

from __future__ import annotations

from typing import TypeAlias

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import FIRST_MONTH, Month

StepContext: TypeAlias = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext

MONTHS = dg.MonthlyPartitionsDefinition(start_date=FIRST_MONTH, fmt="%Y-%m")


def month_of(context: StepContext) -> Month:
    """The month of this run; raises ConfigurationError when the run was launched without one."""
    if not context.has_partition_key:
        raise ConfigurationError(
            "this was launched without a month", remedy="Launch it for one partition, for example 2026-02"
        )
    return Month.parse(context.partition_key)


def closed_month(key: str) -> Month:
    """Read *key*; raises ConfigurationError for a month that is malformed, too early, or not over yet."""
    month = Month.parse(key)
    if not MONTHS.has_partition_key(month.key):
        last = MONTHS.get_last_partition_key()
        raise ConfigurationError(
            f"month {month} is not over yet",
            remedy=f"Take {FIRST_MONTH} to {last}; a month can be materialized once it has ended (UTC)",
        )
    return month
