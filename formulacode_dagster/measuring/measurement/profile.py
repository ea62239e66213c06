"""Where the base spends its time in the timed benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.building.suites.questions import SurveyedBenchmark
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import BaseProfile

from .log import Log

PROFILE_SECONDS = 120.0


def profile_base(base: HarnessClient, benchmarks: Sequence[SurveyedBenchmark], log: Log) -> BaseProfile | None:
    """Calls of each of *benchmarks* at the *base* under the profiler, and their sources.

    A benchmark that fails under the profiler has no functions. None if the harness itself fails: the samples are taken
    by then and remain valid.
    """
    log(f"profiling the base in {len(benchmarks)} benchmarks")
    try:
        return base.profile(benchmarks, budget=PROFILE_SECONDS)
    except ItemFailure as failure:
        log.keep(f"no profile of the base: {failure}")
        return None
