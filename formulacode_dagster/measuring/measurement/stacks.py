"""Stacks in which base and oracle of a measured task spend their time, sampled on request, outside all samples."""

from __future__ import annotations

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.questions import SurveyedBenchmark
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.measurement import Arm, Stacks, TaskProfile

from .arms import Arms
from .log import Log
from .patch import changed_files
from .procedure import Procedure
from .remeasure import ran_on
from .time_budget import TimeBudget

SECONDS = 0.5
"""Own time of each benchmark that is looked at, every few milliseconds."""
MOST_SECONDS = 600.0
"""All benchmarks of one arm together."""
PROFILED = (Arm.BASE, Arm.ORACLE)


def profile_task(
    engine: Engine,
    image: BuiltImage,
    procedure: Procedure,
    *,
    patch: bytes,
    run_id: str,
    seconds: float = SECONDS,
    progress: ProgressReporter | None = None,
) -> TaskProfile:
    """Sample the stacks of the benchmarks by which *patch* was measured in *image*, before and after it.

    A benchmark that does not run on an arm has none there. Raises ItemFailure as `Arms.prepare` and `Remote.survey`.
    """
    log = Log(progress)
    with log.told_by_failures(), Arms.open(engine, image, run_id=run_id, limits=procedure.limits, log=log) as arms:
        arms.prepare(changed_files(patch), patch, procedure.suite_files)
        budget = TimeBudget(procedure.plan.max_seconds)
        stacks: dict[str, dict[Arm, Stacks]] = {name: {} for name in procedure.benchmarks}
        for arm in PROFILED:
            surveyed: list[SurveyedBenchmark] = list(ran_on(arms, arm, procedure, budget).values())
            log(f"sampling stacks of {len(surveyed)} benchmarks on the {arm}")
            for name, told in arms.remotes[arm].stacks(surveyed, seconds=seconds, budget=MOST_SECONDS).items():
                stacks[name][arm] = Stacks.model_validate(told.model_dump(include=set(Stacks.model_fields)))
    return TaskProfile(
        month=image.month,
        repository_id=image.repository_id,
        number=image.number,
        image_digest=image.digest,
        stacks={name: by_arm for name, by_arm in stacks.items() if by_arm},
    )
