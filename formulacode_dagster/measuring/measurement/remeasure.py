"""Measure a task again by its stored procedure: nothing is chosen, only the samples are new."""

from __future__ import annotations

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.questions import SurveyedBenchmark
from formulacode_dagster.building.suites.remote import BenchmarkSelection
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.measurement import Arm, BenchmarkFailure, Measurement, Verdict
from formulacode_dagster.models.reasons import FailureKind

from .arms import Arms
from .choosing import TRIES
from .cores import Cores
from .failures import oracle_breaks
from .log import Log
from .measure import measurement_row, sample
from .patch import changed_files
from .plan import RULE_VERSION
from .procedure import Procedure
from .profile import InstructionCounter
from .relevance import BenchmarkCandidate, not_run
from .returned import compare_returned
from .time_budget import TimeBudget

SHOWN = 5
PATIENCE = 3
"""Times the plan's seconds: a machine may be slower, or busier, and is to come to the same looks."""


def measure_again(
    engine: Engine,
    image: BuiltImage,
    procedure: Procedure,
    *,
    patch: bytes,
    seed: int,
    run_id: str,
    cores: Cores | None = None,
    progress: ProgressReporter | None = None,
) -> tuple[Measurement, str]:
    """Take new samples of *patch* in *image* by *procedure*, judged by its rule; returns them with the log.

    *seed* gives another order, other hash seeds and layouts than the first measurement, so that the same chance is not
    met twice. Raises ItemFailure: `rule_unknown` if the rule is from another platform version, `workload_differs` if
    some benchmark of the procedure cannot be timed here, since a verdict without it would not be about the task; and as
    `measure_task`, except for relevance.
    """
    log, cores = Log(progress), cores or Cores()
    with log.told_by_failures():
        if procedure.rule.version != RULE_VERSION:
            raise ItemFailure(
                FailureKind.RULE_UNKNOWN,
                f"it was judged by version {procedure.rule.version} of the rule, and here it is {RULE_VERSION}",
                remedy="Replay it with the version of the platform that released it",
            )
        # each of them must be timed, however long it takes
        plan = procedure.plan.model_copy(update={"seed": seed, "least_benchmarks": len(procedure.benchmarks)})
        suite, budget = procedure.suite_files, TimeBudget(plan.max_seconds * PATIENCE)
        log.keep(f"measuring {image.spec.task_id} again in {image.location} ({image.digest})")
        with Arms.open(engine, image, run_id=run_id, limits=procedure.limits, log=log) as arms:
            with budget.building(cores.building()):
                arms.prepare(changed_files(patch), patch, suite)
            with budget.paused_at_first(cores.choosing()):
                candidates = _candidates(arms, procedure, budget)
            with budget.paused_at_first(cores.reserved(arms.remotes[Arm.BASE].idlest_core)) as core:
                taken = sample(arms, candidates, rule=procedure.rule, plan=plan, budget=budget, core=core)
            seconds, is_faster = budget.spent, taken.judged.verdict is Verdict.FASTER
            names = procedure.benchmarks
            with cores.choosing():
                returned = compare_returned(arms.remotes, names, procedure.limits, plan, log) if is_faster else {}
                instructions = InstructionCounter(arms.remotes, plan, budget, log).count(candidates)
        failures = [*taken.failures]
        failures += [
            BenchmarkFailure(benchmark=name, arm=Arm.BASE, kind="untimed", message="there was no time for it")
            for name in taken.untimed
        ]
        if failures:
            raise _differs(failures, len(procedure.benchmarks))
        row = measurement_row(image, suite, candidates, taken, seconds=seconds)
        return row.model_copy(update={"returned": returned, "instructions": instructions}), "\n".join(log.lines)


def _candidates(arms: Arms, procedure: Procedure, budget: TimeBudget) -> list[BenchmarkCandidate]:
    """Return the procedure's benchmarks once each runs on every arm; failures are retried once."""
    by_arm = {arm: _surveyed(arms, arm, procedure, budget) for arm in Arm}
    failures = [
        not_run(name, arm, by_arm[arm].get(name))
        for name in procedure.benchmarks
        for arm in Arm
        if name not in by_arm[arm] or by_arm[arm][name].outcome != "ran"
    ]
    if failures and {failure.arm for failure in failures} == {Arm.ORACLE}:
        raise oracle_breaks(failures)
    if failures:
        raise _differs(failures, len(procedure.benchmarks))
    return [
        BenchmarkCandidate({arm: by_arm[arm][name] for arm in Arm}, executes_change=True)
        for name in procedure.benchmarks
    ]


def ran_on(arms: Arms, arm: Arm, procedure: Procedure, budget: TimeBudget) -> dict[str, SurveyedBenchmark]:
    """Return those of the procedure's benchmarks that run on *arm*, by name."""
    surveyed = _surveyed(arms, arm, procedure, budget)
    return {name: each for name, each in surveyed.items() if each.outcome == "ran"}


def _surveyed(arms: Arms, arm: Arm, procedure: Procedure, budget: TimeBudget) -> dict[str, SurveyedBenchmark]:
    surveyed: dict[str, SurveyedBenchmark] = {}
    for _ in range(TRIES):
        ran = {name for name, each in surveyed.items() if each.outcome == "ran"}
        if missing := [name for name in procedure.benchmarks if name not in ran]:
            arms.log(f"running {len(missing)} benchmarks once on the {arm}")
            survey = arms.remotes[arm].survey(
                lines={},
                limit=float(procedure.limits.benchmark_seconds),
                budget=budget.for_survey(procedure.plan.max_survey_seconds),
                selection=BenchmarkSelection(missing),
            )
            surveyed |= {each.name: each for each in survey.benchmarks}
    return surveyed


def _differs(failures: list[BenchmarkFailure], benchmarks: int) -> ItemFailure:
    names = sorted({failure.benchmark for failure in failures})
    return ItemFailure(
        FailureKind.WORKLOAD_DIFFERS,
        f"{len(names)} of the row's {benchmarks} benchmarks cannot be timed here",
        why="; ".join(f"{failure.benchmark}: {failure.kind} on the {failure.arm}" for failure in failures[:SHOWN]),
        remedy="Look at the messages; a slow or busy machine may need another try, or more time",
        log_tail="\n".join(f"{failure.benchmark}: {failure.message}" for failure in failures[:SHOWN]),
    )
