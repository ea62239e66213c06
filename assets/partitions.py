"""The month as Dagster knows it: one partition per closed month, the key as everywhere else."""

from __future__ import annotations

import os
from typing import TypeAlias

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import FIRST_MONTH, Month

StepContext: TypeAlias = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext


def first_month() -> str:
    """Return FC_FIRST_MONTH, with which the list of months begins; raises ConfigurationError if it is no month.

    It is the only setting that loading reads: Dagster needs the partitions of an asset to declare it.
    """
    key = os.environ.get("FC_FIRST_MONTH") or FIRST_MONTH
    try:
        return Month.parse(key).key
    except ConfigurationError as error:
        raise ConfigurationError(f"FC_FIRST_MONTH: {error}") from None


MONTHS = dg.MonthlyPartitionsDefinition(start_date=first_month(), fmt="%Y-%m")


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
        first, last = MONTHS.get_first_partition_key(), MONTHS.get_last_partition_key()
        is_early = first is not None and month.key < first
        raise ConfigurationError(
            f"month {month} is before FC_FIRST_MONTH" if is_early else f"month {month} is not over yet",
            remedy=f"Take {first} to {last}; a month can be materialized once it has ended (UTC)",
        )
    return month
