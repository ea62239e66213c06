"""The gate `one_benchmark_runs`."""

from __future__ import annotations

import math

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import Verification
from formulacode_dagster.suites.remote import Survey

from .importing import last_line
from .results import listed

NAME = "one_benchmark_runs"


def one_benchmark_runs(survey: Survey | ItemFailure) -> Verification:
    """At least one benchmark runs to its end and gives a finite time; one that was killed gives none."""
    if isinstance(survey, ItemFailure):
        return Verification(name=NAME, ok=False, detail=str(survey), log_tail=survey.log_tail)
    ran = [one for one in survey.benchmarks if one.outcome == "ran" and 0 < one.seconds < math.inf]
    if ran:
        return Verification(
            name=NAME, ok=True, detail=f"{len(ran)} benchmarks run, {ran[0].name} in {ran[0].seconds:.3g} s among them"
        )
    failed = [one for one in survey.benchmarks if one.outcome not in ("skipped", "untraced")]
    problems = [f"{one.name} {one.outcome}: {last_line(one.message)}" for one in failed]
    if not problems:
        untimed = "no benchmark measures time" if not survey.benchmarks else "every benchmark is skipped"
        problems = ["there was no time to run one" if _ended_early(survey) else untimed]
    tail = "\n".join(f"{one.name} {one.outcome}\n{one.message}" for one in failed)
    return Verification(name=NAME, ok=False, detail=listed(problems), log_tail=tail)


def _ended_early(survey: Survey) -> bool:
    return any(one.outcome == "untraced" for one in survey.benchmarks)
