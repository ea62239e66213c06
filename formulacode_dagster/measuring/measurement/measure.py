"""Timing the author's patch of one task against its base, in the task's own image."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from formulacode_dagster.building.engines.protocol import Engine, Session
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import KeptBuild
from formulacode_dagster.measuring.workloads.own_tests import suites_of_tests
from formulacode_dagster.measuring.workloads.sides import Sides
from formulacode_dagster.measuring.workloads.snippets import suites_of_scripts, suites_of_snippets
from formulacode_dagster.measuring.workloads.written import Writer, written_suites
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import (
    Arm,
    BenchmarkFailure,
    DecisionRule,
    Measurement,
    RandomizationUnit,
    Verdict,
)
from formulacode_dagster.models.pull_request import PullRequest

from .arms import Arms
from .changed_code import ChangedCode
from .choosing import Chooser, LaterSuites, ShownAtBase, no_later_suites, nothing_shown
from .compiled_lines import CompiledLines
from .cores import Cores
from .log import Log
from .patch import FileChange, changed_files
from .plan import SamplingPlan
from .procedure import Procedure
from .profile import InstructionCounter, profile_base
from .relevance import NOTHING_LEFT_OUT, BenchmarkCandidate, UntimedCounts
from .returned import compare_returned
from .sampling import MoreSeconds, Sampler, Taken, no_more_seconds
from .surveyed import Surveyed
from .time_budget import TimeBudget


@dataclass(frozen=True)
class TimedTask:
    """Samples of a task with their verdict, the procedure to repeat them, and the log."""

    measurement: Measurement
    procedure: Procedure
    log: str
    hidden: tuple[str, ...]
    """Parts of the change that run compiled."""
    oracle: Session | None = None
    """A copy of the oracle as it was built, if the sessions of its task are still open."""


@dataclass(frozen=True)
class TaskToMeasure:
    """A pull request with its patch and built image, for the run of that id."""

    pr: PullRequest
    patch: bytes
    image: BuiltImage
    run_id: str
    sessions: ExitStack | None = None
    """Closes the sessions when the repository's tests have run, which begin with a copy of the built oracle; without
    it, they close with the measurement.
    """


@dataclass(frozen=True)
class WorkloadSources:
    """Sources of workloads in their order: the suite, suites for the names of the changed code, scripts, a model."""

    suite: SuiteFiles
    later: LaterSuites = no_later_suites
    shown: ShownAtBase = nothing_shown
    writer: Writer | None = None


@dataclass(frozen=True)
class MeasurementSettings:
    """How tasks are sampled, within which limits, and on which cores."""

    plan: SamplingPlan
    limits: ResourceLimits
    cores: Cores = field(default_factory=Cores)


Keep = Callable[[TimedTask], object]
"""Receives the timed task if something after the samples fails."""


def keep_nothing(_timed: TimedTask) -> None:
    """Do nothing."""


def measure_task(
    engine: Engine,
    task: TaskToMeasure,
    workloads: WorkloadSources,
    settings: MeasurementSettings,
    *,
    surveyed: Surveyed | None = None,
    keep: Keep = keep_nothing,
    progress: ProgressReporter | None = None,
) -> TimedTask:
    """Measure the patch of *task* against its base.

    The suite of *workloads* is copied over base, oracle and control alike; if none of its benchmarks is relevant to the
    change, fallbacks are tried in order: later suites for the names of the changed code, scripts shown for them, the
    repository's tests, snippets from docs and issues, benchmarks by the writer. Benchmarks ruled out in *surveyed* do
    not run again, and new results are added to it. Benchmarks stay on one core, which other users of the cores leave
    free. A measurement that is not faster is returned too. *keep* gets a measurement if a later step fails, without the
    missing parts.

    Raises ItemFailure, with the end of the log: `malformed_patch`, `oracle_does_not_apply`, `oracle_does_not_build`,
    `base_does_not_build`, `oracle_breaks_benchmarks`, `benchmarks_fail`, `relevance_unknown`,
    `survey_unfinished`, `timeout`. Raises Rejection (`no_relevant_workload`) when no benchmark executes the change.
    """
    pr, patch, image, run_id = task.pr, task.patch, task.image, task.run_id
    suite, writer = workloads.suite, workloads.writer
    plan, limits, cores, log = settings.plan, settings.limits, settings.cores, Log(progress)
    sampled: list[TimedTask] = []
    with log.told_by_failures(), _kept(sampled, keep):
        files = changed_files(patch)
        log.keep(f"measuring {pr.item} in {image.tag} ({image.digest})")
        budget = TimeBudget(plan.max_seconds)
        with ExitStack() as own:
            arms = Arms(engine, image, run_id, limits, log, task.sessions or own)
            with budget.building(cores.building()):
                sources = arms.prepare(files, patch, suite, copy_oracle=task.sessions is not None)
            oracle = arms.as_built.get(Arm.ORACLE)
            folder = image.spec.benchmark_dir
            turns = cores.building, cores.choosing
            with CompiledLines(arms, patch, limits, plan, budget, log, *turns) as compiled:
                chooser = Chooser(
                    arms.remotes,
                    files,
                    sources,
                    compiled,
                    surveyed or Surveyed(),
                    folder,
                    limits,
                    plan,
                    budget,
                    log,
                    turn=cores.choosing,
                )

                def others(changed: ChangedCode) -> Iterator[SuiteFiles]:
                    yield from workloads.later(changed.names)
                    both = arms.sessions[Arm.BASE], arms.sessions[Arm.ORACLE]
                    sides = Sides(engine, image, both, (changed.base, changed.oracle), run_id, bool(changed.compiled))
                    at_base, commit, merged = sources[Arm.BASE], pr.change.base_sha, pr.facts.merge_commit_sha
                    texts = workloads.shown(changed.names)
                    yield from suites_of_scripts(sides, texts, commit=commit, note=log)
                    yield from suites_of_tests(sides, patch=patch, commit=commit, merged=merged, note=log)
                    yield from suites_of_snippets(sides, pr, patch, at_base, texts, note=log)
                    if writer is not None:
                        touched = _touched(files, changed)
                        yield from written_suites(sides, writer, code=at_base, changed=touched, commit=commit, note=log)

                choice = chooser.choose(suite, others)
            with budget.paused_at_first(cores.reserved(arms.remotes[Arm.BASE].idlest_core)) as core:
                counter = InstructionCounter(arms.remotes, plan, budget, log)
                taken = sample(
                    arms,
                    choice.candidates,
                    plan=plan,
                    budget=budget,
                    core=core,
                    more_seconds=counter.more_seconds,
                )
            for failure in [*choice.failures, *taken.failures]:
                log.keep(f"{failure.benchmark} failed on the {failure.arm}: {failure.kind}\n{failure.message}")
            names = [result.benchmark for result in taken.judged.results]
            procedure = Procedure.of(
                image,
                patch=patch,
                suite=choice.suite,
                benchmarks=names,
                plan=plan,
                rule=taken.rule,
                limits=limits,
            )
            row = measurement_row(
                image,
                choice.suite,
                choice.candidates,
                taken,
                seconds=budget.spent,
                failures=choice.failures,
                left_out=choice.left_out,
            )
            reached, unreached = choice.reached
            row = row.model_copy(update={"reached": reached, "unreached": unreached})
            sampled.append(TimedTask(row, procedure, "\n".join(log.lines), choice.changed.hidden, oracle))
            if row.verdict in (Verdict.FASTER, Verdict.INCONCLUSIVE):
                timed = [candidate for candidate in choice.candidates if candidate.name in set(names)]
                # after the samples: nothing of ours runs next to a timing
                with cores.choosing():
                    found: dict[str, object] = {"instructions": counter.count(timed)}
                    if row.is_faster:
                        base = [candidate.by_arm[Arm.BASE] for candidate in timed]
                        found["returned"] = compare_returned(arms.remotes, names, limits, plan, log)
                        found["profile"] = profile_base(arms.remotes[Arm.BASE], base, log)
                row = row.model_copy(update=found)
                sampled.append(TimedTask(row, procedure, "\n".join(log.lines), choice.changed.hidden, oracle))
        return sampled[-1]


@contextmanager
def _kept(sampled: Sequence[TimedTask], keep: Keep) -> Iterator[None]:
    """Give *keep* the last of what is *sampled* in the block if a later step fails."""
    try:
        yield
    except FormulaCodeError:
        if sampled:
            keep(sampled[-1])
        raise


def sample(
    arms: Arms,
    candidates: Sequence[BenchmarkCandidate],
    *,
    rule: DecisionRule | None = None,
    plan: SamplingPlan,
    budget: TimeBudget,
    core: int,
    more_seconds: MoreSeconds = no_more_seconds,
) -> Taken:
    """Sample by *rule*, or else by the plan's for the randomization unit.

    The unit is the build if the shared objects of base and oracle differ, else the process. Raises ItemFailure as
    `Sampler.take`.
    """
    objects = dict.fromkeys(Arm, "")
    if rule is None:
        # a patch of Python too: it may be a generator of sources, and two builds of the same sources may differ
        objects = arms.objects()
        if is_build := objects[Arm.BASE] != objects[Arm.ORACLE]:
            arms.log("base and oracle have different shared objects: every round has builds of its own")
        metrics = {candidate.quantity.metric for candidate in candidates}
        rule = plan.rule(RandomizationUnit.BUILD if is_build else RandomizationUnit.PROCESS, metrics)
    unit = rule.unit
    layouts = random.Random(plan.seed)  # noqa: S311 - spreads layouts, protects nothing

    def make_build(arm: Arm) -> KeptBuild:
        if unit is RandomizationUnit.PROCESS:
            return KeptBuild(objects=objects[arm])
        # within the timing turn: no other run builds meanwhile, and the task itself times nothing
        with budget.building():
            return arms.build_anew(arm, layouts)

    sampler = Sampler(
        arms.remotes,
        candidates,
        plan=plan,
        rule=rule,
        budget=budget,
        make_build=make_build,
        core=core,
        note=arms.log,
        more_seconds=more_seconds,
    )
    return sampler.take()


def _touched(files: Sequence[FileChange], changed: ChangedCode) -> dict[str, frozenset[int]]:
    """Return the changed lines of the base, and those around insertions, by path."""
    return {
        file.base_path: file.base_lines | file.beside_insertions
        for file in files
        if file.base_path and (file.base_path in changed.base or file.oracle_path in changed.oracle)
    }


def measurement_row(
    image: BuiltImage,
    suite: SuiteFiles,
    candidates: Sequence[BenchmarkCandidate],
    taken: Taken,
    *,
    seconds: float,
    failures: Sequence[BenchmarkFailure] = (),
    left_out: UntimedCounts = NOTHING_LEFT_OUT,
) -> Measurement:
    """Return the stored form of samples *taken* in *image*; *failures* are of benchmarks that were not timed at all."""
    return Measurement(
        month=image.month,
        repository_id=image.repository_id,
        number=image.number,
        engine=image.engine,
        image_digest=image.digest,
        instrument=image.spec.instrument,
        suite=suite.name,
        provenance=suite.provenance,
        executed={candidate.name: candidate.executed for candidate in candidates},
        **taken.judged.figures(),
        rule=taken.rule,
        look=taken.look,
        rounds=taken.rounds,
        failures=(*failures, *taken.failures),
        untimed=taken.untimed,
        unsurveyed=left_out.unsurveyed,
        undrawn=left_out.undrawn,
        weak=left_out.weak,
        time_in_change={
            each.name: round(each.time_in_change, 4) for each in candidates if each.time_in_change is not None
        },
        conditions=taken.conditions,
        seconds=round(seconds, 1),
        machine=taken.machine,
    )
