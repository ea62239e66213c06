"""The verification `one_benchmark_runs`."""

from __future__ import annotations

import math
import re

from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.models.base import listed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import Verification

NAME = "one_benchmark_runs"
_WANTS_NETWORK = re.compile(r"in name resolution|name or service not known|network is unreachable", re.IGNORECASE)


def one_benchmark_runs(survey: Survey | ItemFailure) -> Verification:
    """At least one benchmark completes and gives a finite time; a killed one gives none.

    A suite in which every benchmark needs the network proves nothing against the image, which has none: measurement
    then finds workloads, as without a suite.
    """
    if isinstance(survey, ItemFailure):
        return Verification(name=NAME, ok=False, detail=str(survey), log_tail=survey.log_tail)
    ran = [
        benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran" and 0 < benchmark.seconds < math.inf
    ]
    if ran:
        return Verification(
            name=NAME, ok=True, detail=f"{len(ran)} benchmarks run, {ran[0].name} in {ran[0].seconds:.3g} s among them"
        )
    failed = [benchmark for benchmark in survey.benchmarks if benchmark.outcome not in ("skipped", "untraced")]
    wants_network = [benchmark for benchmark in failed if _WANTS_NETWORK.search(benchmark.message)]
    if failed and wants_network == failed and not _ended_early(survey):
        detail = f"each of {len(failed)} benchmarks needs the network, {failed[0].name} among them: none is timed"
        return Verification(name=NAME, ok=True, detail=detail)
    problems = [f"{benchmark.name} {benchmark.outcome}: {last_line(benchmark.message)}" for benchmark in failed]
    if not problems:
        nothing = (
            "no benchmark is of a kind that is measured" if not survey.benchmarks else "every benchmark is skipped"
        )
        problems = ["there was no time to run one" if _ended_early(survey) else nothing]
    tail = "\n".join(f"{benchmark.name} {benchmark.outcome}\n{benchmark.message}" for benchmark in failed)
    return Verification(name=NAME, ok=False, detail=listed(problems, between="; "), log_tail=tail)


def _ended_early(survey: Survey) -> bool:
    return any(benchmark.outcome == "untraced" for benchmark in survey.benchmarks)
