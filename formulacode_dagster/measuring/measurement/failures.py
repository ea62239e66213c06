"""Failures of tasks whose benchmarks do not run."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import BenchmarkFailure
from formulacode_dagster.models.reasons import FailureKind

UNBUILT = frozenset({FailureKind.ORACLE_DOES_NOT_BUILD, FailureKind.BASE_DOES_NOT_BUILD, FailureKind.TIMEOUT})
"""Failures of a build: during sampling they cost only the remaining rounds."""


def oracle_breaks(failures: Sequence[BenchmarkFailure]) -> ItemFailure:
    """Return the failure for benchmarks that fail with the oracle repeatedly, and nowhere else."""
    return ItemFailure(
        FailureKind.ORACLE_BREAKS_BENCHMARKS,
        f"{len(failures)} benchmarks failed with the author's patch, twice, and with the base never",
        why=f"{failures[0].benchmark}: {failures[0].kind}",
        remedy="Look at the messages: the patch may need an environment that the base does not",
        log_tail="\n".join(f"{failure.benchmark}: {failure.message}" for failure in failures),
    )


def nothing_timed(failures: Sequence[BenchmarkFailure], shown: int = 5) -> ItemFailure:
    """Return the failure of a task without a benchmark that could be timed."""
    return ItemFailure(
        FailureKind.BENCHMARKS_FAIL,
        "every relevant benchmark failed while it was timed",
        why="; ".join(f"{failure.benchmark}: {failure.kind} on the {failure.arm}" for failure in failures[:shown]),
        log_tail="\n".join(f"{failure.benchmark}: {failure.message}" for failure in failures[:shown]),
    )


def several_machines(first: str, other: str) -> ItemFailure:
    """Return the failure of a task whose arms were timed on different machines: the times are not comparable."""
    return ItemFailure(
        FailureKind.SEVERAL_MACHINES,
        "its arms were timed on different machines",
        why=f"{first}; {other}",
        remedy="Let DOCKER_HOST name a daemon of one machine",
    )
