"""A round of one commit: its suite surveyed in a fresh session, then so many processes, on one core."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import Field

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import (
    FAILED,
    Description,
    NotTimed,
    ProcessSetting,
    Survey,
    SurveyedBenchmark,
    Timed,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import PADDING_STEPS, BenchmarkSelection, HarnessClient
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.relevance import TIMEABLE
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Metric
from formulacode_dagster.models.reasons import FailureKind


class RoundsPlan(Frozen):
    """The effort spent on each commit."""

    rounds: int = Field(default=2, ge=1, description="turns that each commit has, between those of the others")
    processes: int = Field(default=5, ge=1, description="samples of a benchmark in a round, each of a fresh process")
    seconds_per_sample: float = Field(default=0.1, gt=0, description="seconds of timing in one process, warm-up apart")
    single_call_seconds: float = Field(
        default=1.0, gt=0, description="a benchmark whose one call takes longer is called once a process"
    )
    max_seconds: float = Field(default=600.0, gt=0, description="seconds after which a round begins no more processes")
    pattern: str = Field(default="", description="regular expression of the names that are benchmarked; empty: all")
    seed: int = Field(default=0, description="of the order of commits and of samples")


@dataclass(frozen=True)
class TakenRound:
    """Result of a round of one commit."""

    descriptions: tuple[Description, ...]
    samples: dict[str, list[Timed | NotTimed]]
    """Keys are asv's names with parameters, in the order of sampling."""
    lost: dict[str, str]
    """Modules and classes that could not be loaded, and why."""
    processes: int
    steal: float
    others: float
    """The worst shares of the core's time that the hypervisor, and other processes, took."""
    machine: str
    seconds: float


def take_round(
    engine: Engine,
    image: BuiltImage,
    suite: SuiteFiles,
    plan: RoundsPlan,
    *,
    limits: ResourceLimits,
    cores: Cores,
    generator: random.Random,
    run_id: str,
) -> TakenRound:
    """Samples of every benchmark of *suite* in *image*.

    Raises ItemFailure: `benchmarks_fail` if none runs, `timeout`, and as the session.
    """
    budget = TimeBudget(plan.max_seconds)
    with engine.session(image, run_id=run_id) as session:
        remote = HarnessClient(session, benchmark_dir=image.spec.benchmark_dir, environment=image.spec.run_environment)
        if suite.files is not None:
            remote.write(suite.files)
        survey = _surveyed(remote, plan, limits.benchmark_seconds)
        wanted = survey.benchmarks
        described = {
            each.name: each for each in remote.describe(skip=survey.lost, import_limit=limits.benchmark_seconds)
        }
        samples: dict[str, list[Timed | NotTimed]] = {each.name: [] for each in wanted}
        for each in wanted:
            if each.outcome not in TIMEABLE:
                samples[each.name].append(NotTimed(kind=each.outcome, message=each.message))
        timed = [each for each in wanted if each.outcome in TIMEABLE]
        if not timed:
            raise _nothing_runs(wanted, survey.lost)
        conditions, processes = [], 0
        with cores.reserved(remote.idlest_core) as core:
            while processes < plan.processes and (not processes or budget.left):
                order = generator.sample(timed, len(timed))
                setting = ProcessSetting(
                    hash_seed=generator.randrange(1, 2**32), padding=generator.randrange(PADDING_STEPS), core=core
                )
                asked = [
                    TimedBenchmark(each, each.isolate, each.setup_seconds, _is_single_call(each, plan))
                    for each in order
                ]
                answer = remote.time(asked, seconds=plan.seconds_per_sample, setting=setting)
                processes += 1
                conditions += [answer.conditions] if answer.conditions else []
                for each, sample in zip(order, answer.samples, strict=True):
                    samples[each.name].append(sample)
    return TakenRound(
        descriptions=tuple(
            described[name] for name in sorted({each.name.partition("(")[0] for each in wanted}) if name in described
        ),
        samples=samples,
        lost=survey.lost,
        processes=processes,
        steal=max((each.steal for each in conditions), default=0.0),
        others=max((each.others for each in conditions), default=0.0),
        machine=conditions[-1].machine if conditions else "",
        seconds=round(budget.spent, 1),
    )


def _surveyed(remote: HarnessClient, plan: RoundsPlan, limit: float) -> Survey:
    """Return the survey of the benchmarks that *plan* names; the others are listed first, and not run."""

    def survey(selection: BenchmarkSelection) -> Survey:
        return remote.survey(lines={}, limit=limit, budget=plan.max_seconds, selection=selection)

    if not plan.pattern:
        return survey(BenchmarkSelection())
    listed = survey(BenchmarkSelection(enough=0))
    return survey(BenchmarkSelection(only=[one.name for one in listed.benchmarks if re.search(plan.pattern, one.name)]))


def _is_single_call(benchmark: SurveyedBenchmark, plan: RoundsPlan) -> bool:
    return benchmark.metric is not Metric.TIME or benchmark.seconds > plan.single_call_seconds


def _nothing_runs(wanted: Sequence[SurveyedBenchmark], lost: Iterable[str]) -> ItemFailure:
    failed = [each for each in wanted if each.outcome in FAILED]
    return ItemFailure(
        FailureKind.BENCHMARKS_FAIL,
        f"none of {len(wanted)} benchmarks runs",
        why=f"{failed[0].name} ends as {failed[0].outcome}" if failed else f"not loaded: {', '.join(lost) or 'none'}",
        log_tail="\n".join(f"{each.name} {each.outcome}: {each.message}" for each in failed[:5]),
    )
