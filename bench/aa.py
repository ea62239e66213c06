"""Rates of false accepts for patches without effect and of detections for patches with one, and the cost of a task.

Every task is a patch, rebuilt and sampled on this machine, and judged by the production rule. Results in
`build/bench-aa.jsonl`, for the same plan and rule, are reused: stop and restart it at any time. Needs the package index
once, for images.

python bench/aa.py --tasks 300 --per-effect 20 --arms all --repositories DIR --found LOGS

DIR holds bare mirrors as owner/name.git; those whose image can be built take part in the tasks without effect, with the
configured engine (FC_ENGINE …). LOGS is the output of `make yield LOGS=…`: its workloads take part as well, and false
accepts are reported by their source. `--per-source` adds tasks of our own two repositories whose functions are timed
like sources that overlay a file: tests, fixtures, scripts, snippets, tests with larger inputs. The last line is JSON,
with the figures of each way to run the arms of a round: in parallel, in turns, or in parallel with a separate core for
the oracle.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import median

from aa_mirrors import Mirrors
from aa_sources import laid_by
from aa_tasks import EFFECTS, AaTask, build, changed, commit, diff, files, tasks, timed

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.process.removal import finish_removals
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import (
    ProcessAnswer,
    ProcessSetting,
    SurveyedBenchmark,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.measuring.measurement.arms import Arms as ArmSessions
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.measure import sample
from formulacode_dagster.measuring.measurement.patch import changed_files
from formulacode_dagster.measuring.measurement.plan import RULE_VERSION, SamplingPlan
from formulacode_dagster.measuring.measurement.relevance import BenchmarkCandidate
from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.measuring.measurement.statistics.contrasts import contrast_of
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Arm, Source

KEPT = Path("build/bench-aa.jsonl")
SURVEY_SECONDS = 30.0
MOST_BENCHMARKS = 6


class Arms(StrEnum):
    """How the arms of a round run."""

    AT_ONCE = "at_once"
    """On one core, which they share: the platform's default."""
    TURNS = "turns"
    """One after another on one core, in random order."""
    TWO_CORES = "two_cores"
    """In parallel, the oracle on the next core: Bulej et al., ICPE 2020. The control shares the base's."""


@dataclass(frozen=True)
class Outcome:
    """How one task ended."""

    task: AaTask
    arms: Arms
    verdict: str
    speedup: float
    control: float
    unit: str
    rounds: int
    disturbed: bool
    spread: float
    """Standard deviation of a round's logarithm of base / oracle, over all benchmarks and without bounds."""
    round_cpu_seconds: float
    """Seconds of each round, with its builds and the warm-up."""
    cpu_seconds: float
    seconds: float
    machine: str
    source: str = Source.BASE_SUITE
    """Source of the workload."""
    rule: str = ""
    """As in `rule_of`: results of another rule do not count for this one."""


OF_NO_RULE = {"seed", "at_once", "claim_share", "least_benchmarks", "instructions_share", "more_share"}
"""A task says them itself, takes less time than it has before fewer of its benchmarks are timed, and is not counted."""


def main() -> None:
    """Measure the missing tasks, and print the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=300, help="tasks without effect")
    parser.add_argument("--per-source", type=int, default=0, help="tasks without effect by each source of workloads")
    parser.add_argument("--per-effect", type=int, default=20, help="tasks of each true effect")
    parser.add_argument("--arms", choices=[*Arms, "all"], default=Arms.AT_ONCE, help="how those of a round run")
    parser.add_argument("--sample-seconds", type=float, default=SamplingPlan().seconds_per_sample)
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--found", type=Path, help="folder of workloads that `make yield LOGS=…` found in these")
    parser.add_argument("--kept", type=Path, default=KEPT)
    options = parser.parse_args()
    done = read(options.kept, rule_of(options.sample_seconds))
    ways = list(Arms) if options.arms == "all" else [Arms(options.arms)]
    if options.found and not options.repositories:
        parser.error("--found needs --repositories, in which its workloads were found")
    mirrors = Mirrors(options.repositories, options.found) if options.repositories else None
    kinds = mirrors.kinds() if mirrors else {}
    asked = [
        (task, arms) for task in tasks(options.tasks, options.per_effect, kinds, options.per_source) for arms in ways
    ]
    # a build of a real repository takes longest: an interrupted run has most other tasks
    left = sorted((key for key in asked if key not in done), key=lambda key: key[0].builds_a_mirror)
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        bench = Bench(Path(folder), options.sample_seconds, mirrors)
        for place, (task, arms) in enumerate(left, start=1):
            try:
                outcome = bench.run(task, arms)
            except ItemFailure as failure:
                print(f"{task.repository} {task.kind} is left out: {failure}".lstrip(), file=sys.stderr, flush=True)
                continue
            if outcome is None:
                continue
            done[task, arms] = outcome
            with options.kept.open("a") as kept:
                kept.write(json.dumps(asdict(outcome)) + "\n")
            place_of = f"{task.repository}{task.source} {task.kind} {task.effect:g}x, {arms}".lstrip()
            told = f"{place_of}: {outcome.verdict}, {outcome.speedup:.3f}x"
            print(
                f"{place} of {len(left)}: {told}, control {outcome.control:.3f}x, {outcome.cpu_seconds:.0f} s",
                flush=True,
            )
        finish_removals()
    print(json.dumps({way: figures(ended(done, asked, way)) for way in ways}))


def ended(
    done: Mapping[tuple[AaTask, Arms], Outcome], asked: Sequence[tuple[AaTask, Arms]], way: Arms
) -> list[Outcome]:
    """Return the measured tasks of those *asked*; repositories without an image have none."""
    return [done[key] for key in asked if key[1] is way and key in done]


@dataclass(frozen=True)
class Subject:
    """Environment and patch of a task."""

    engine: Engine
    image: BuiltImage
    suite: SuiteFiles
    patch: bytes
    names: tuple[str, ...] = ()
    """The benchmarks to time; none for any of the suite."""


class Bench:
    """Two repositories of our own, one pure and one compiled, those of a folder of mirrors, and their images."""

    def __init__(self, folder: Path, sample_seconds: float, mirrors: Mirrors | None = None) -> None:
        self._folder, self._mirrors = folder, mirrors
        self._engine = ProcessEngine(folder / "engine", ResourceLimits())
        self._repositories = {compiled: folder / f"repository{compiled:d}" for compiled in (False, True)}
        self._images: dict[bool, BuiltImage] = {}
        self._sample_seconds = sample_seconds

    def run(self, task: AaTask, arms: Arms) -> Outcome | None:
        """Sample and judge one task; None if its repository has no image, or no benchmark that runs."""
        seed = random.Random(f"{task}").randrange(2**31)  # noqa: S311 - an edit, not a secret
        subject = self._subject(task, random.Random(seed))  # noqa: S311 - a draw, not a secret
        if subject is None:
            return None
        plan = SamplingPlan(seconds_per_sample=self._sample_seconds, seed=seed, at_once=arms is not Arms.TURNS)
        start, spent = time.monotonic(), cpu_seconds()
        log, limits = Log(None), ResourceLimits()
        with ArmSessions.open(subject.engine, subject.image, run_id="bench", limits=limits, log=log) as sessions:
            sessions.prepare(changed_files(subject.patch), subject.patch, subject.suite)
            if arms is Arms.TWO_CORES:
                next_core_for(sessions.remotes[Arm.ORACLE])
            budget = TimeBudget(plan.max_seconds)
            candidates = chosen(sessions, subject.names)
            if not candidates:
                print(f"{task.repository or task.kind} is left out: no benchmark runs on all arms", file=sys.stderr)
                return None
            with Cores().reserved(sessions.remotes[Arm.BASE].idlest_core) as core:
                begun = cpu_seconds()
                taken = sample(sessions, candidates, plan=plan, budget=budget, core=core)
            sampled = cpu_seconds() - begun
        judged = taken.judged
        samples = {result.benchmark: result.samples for result in judged.results}
        differences = contrast_of(samples, Arm.ORACLE, taken.rule, {}).differences.mean(axis=1)
        return Outcome(
            task=task,
            arms=arms,
            verdict=judged.verdict.value,
            speedup=judged.speedup,
            control=judged.control_speedup,
            unit=taken.rule.unit.value,
            rounds=taken.rounds,
            disturbed=judged.disturbed,
            spread=float(differences.std(ddof=1)),
            round_cpu_seconds=sampled / taken.rounds,
            cpu_seconds=round(cpu_seconds() - spent, 1),
            seconds=round(time.monotonic() - start, 1),
            machine=taken.machine,
            source=subject.suite.source,
            rule=rule_of(self._sample_seconds),
        )

    def _subject(self, task: AaTask, generator: random.Random) -> Subject | None:
        if not task.repository:
            image = self._image(task.is_compiled)
            patch = diff(self._repositories[task.is_compiled], changed(task, generator))
            suite = SuiteFiles("base")
            if task.source:
                suite = laid_by(Source(task.source), *timed(compiled=task.is_compiled), image.spec)
            return Subject(self._engine, image, suite, patch)
        built = self._mirrors.image(task.repository) if self._mirrors else None
        if self._mirrors is None or built is None:
            return None
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            patch = self._mirrors.patch(task, built.image, generator, Path(scratch))
        return Subject(self._mirrors.engine, built.image, built.suite, patch, built.names)

    def _image(self, compiled: bool) -> BuiltImage:
        if compiled not in self._images:
            repository = self._repositories[compiled]
            base = commit(repository, files(compiled=compiled))
            self._images[compiled] = build(self._engine, repository, base)
        return self._images[compiled]


def next_core_for(remote: HarnessClient) -> None:
    """Have *remote* time on the core after the requested one."""
    time_there = remote.time

    def timed_beside(asked: Sequence[TimedBenchmark], *, seconds: float, setting: ProcessSetting) -> ProcessAnswer:
        return time_there(asked, seconds=seconds, setting=replace(setting, core=setting.core + 1))

    remote.time = timed_beside  # type: ignore[method-assign]


def chosen(sessions: ArmSessions, wanted: Sequence[str] = ()) -> list[BenchmarkCandidate]:
    """A few benchmarks that run on every arm, of those *wanted* if any are."""
    names: list[str] | None = list(wanted) or None
    surveys: dict[Arm, dict[str, SurveyedBenchmark]] = {}
    for arm in Arm:
        survey = sessions.remotes[arm].survey(
            lines={},
            limit=20,
            budget=SURVEY_SECONDS,
            selection=BenchmarkSelection(names, enough=MOST_BENCHMARKS if names is None else None),
        )
        surveys[arm] = {benchmark.name: benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"}
        names = list(surveys[arm])
    return [BenchmarkCandidate({arm: surveys[arm][name] for arm in Arm}, executes_change=True) for name in names or ()]


def _false_accepts(same: Sequence[Outcome], source: str) -> dict[str, object]:
    mine = [outcome for outcome in same if outcome.source == source]
    accepted = sum(outcome.verdict == "faster" for outcome in mine)
    interval = [round(bound, 4) for bound in clopper_pearson(accepted, len(mine))]
    return {"tasks": len(mine), "false_accepts": accepted, "false_accept_interval": interval}


def rule_of(sample_seconds: float) -> str:
    """Version of the rule, and a digest of the plan without per-task parts and those that change no result."""
    plan = SamplingPlan(seconds_per_sample=sample_seconds).model_dump_json(exclude=OF_NO_RULE)
    return f"{RULE_VERSION} {hashlib.sha256(plan.encode()).hexdigest()[:12]}"


def cpu_seconds() -> float:
    """CPU seconds of this process and its ended children, without containers."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def read(kept: Path, rule: str) -> dict[tuple[AaTask, Arms], Outcome]:
    """Return earlier results of the same *rule*; report how many are of another."""
    if not kept.exists():
        return {}
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    outcomes = [Outcome(**{**row, "task": AaTask(**row["task"]), "arms": Arms(row["arms"])}) for row in rows]
    same = {(outcome.task, outcome.arms): outcome for outcome in outcomes if outcome.rule == rule}
    if others := sum(outcome.rule != rule for outcome in outcomes):
        print(f"{others} tasks in {kept} were measured by another plan or rule: not counted", file=sys.stderr)
    return same


def figures(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """False accepts with their interval, power by effect, accuracy, cost."""
    same = [outcome for outcome in outcomes if outcome.task.effect == 1.0]
    told: dict[str, object] = {
        "tasks": len(same),
        "verdicts": dict(Counter(outcome.verdict for outcome in same)),
        "false_accepts": (accepted := sum(outcome.verdict == "faster" for outcome in same)),
    }
    if same:
        told["false_accept_interval"] = [round(bound, 4) for bound in clopper_pearson(accepted, len(same))]
    told["power"] = {
        f"{effect:g}": f"{sum(outcome.verdict == 'faster' for outcome in measured)} of {len(measured)}"
        for effect in EFFECTS
        if (measured := [outcome for outcome in outcomes if outcome.task.effect == effect])
    }
    for kind in ("py", "c"):
        # those of real repositories are spent in containers
        own = [outcome for outcome in outcomes if not outcome.task.repository]
        cost = [outcome for outcome in own if outcome.task.kind.startswith(f"{kind} ")]
        if cost:
            told[f"cpu_seconds_{kind}"] = round(sum(outcome.cpu_seconds for outcome in cost) / len(cost), 1)
            told[f"seconds_{kind}"] = round(sum(outcome.seconds for outcome in cost) / len(cost), 1)
            told[f"round_sd_{kind}"] = round(median(outcome.spread for outcome in cost), 4)
            # a mean over as many rounds as a second of the processor has
            after = [outcome.spread * math.sqrt(outcome.round_cpu_seconds) for outcome in cost]
            told[f"sd_after_a_cpu_second_{kind}"] = round(median(after), 4)
    told["by_source"] = {source: _false_accepts(same, source) for source in sorted({each.source for each in same})}
    told["repositories"] = dict(Counter(outcome.task.repository for outcome in same if outcome.task.repository))
    told["machines"] = sorted({outcome.machine for outcome in outcomes})
    return told


if __name__ == "__main__":
    main()
