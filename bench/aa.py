"""How often a patch without effect is called faster, how often one with an effect is found, and what a task costs.

Every task is a patch, rebuilt and sampled on this machine, and judged by the rule that judges real ones. What is kept
in `build/bench-aa.jsonl` is not done again: stop and start it as you like. Needs the package index once, for images.

    python bench/aa.py --tasks 300 --per-effect 20

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from aa_tasks import EFFECTS, AaTask, build, changed, commit, diff, files, tasks

from formulacode_dagster.engines.process.engine import ProcessEngine
from formulacode_dagster.measurement.arms import Arms
from formulacode_dagster.measurement.budget import Budget
from formulacode_dagster.measurement.chance import clopper_pearson
from formulacode_dagster.measurement.cores import Cores
from formulacode_dagster.measurement.log import Log
from formulacode_dagster.measurement.measure import sample
from formulacode_dagster.measurement.patch import changed_files
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.relevance import Candidate
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.suites.overlays import SuiteFiles

KEPT = Path("build/bench-aa.jsonl")
SURVEY_SECONDS = 30.0


@dataclass(frozen=True)
class Outcome:
    """How one task ended."""

    task: AaTask
    verdict: str
    speedup: float
    control: float
    unit: str
    rounds: int
    disturbed: bool
    cpu_seconds: float
    seconds: float
    machine: str


def main() -> None:
    """Measure what is not measured yet, and print the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=300, help="tasks without effect")
    parser.add_argument("--per-effect", type=int, default=20, help="tasks of each true effect")
    parser.add_argument("--sample-seconds", type=float, default=0.05)
    parser.add_argument("--kept", type=Path, default=KEPT)
    options = parser.parse_args()
    done = read(options.kept)
    asked = tasks(options.tasks, options.per_effect)
    left = [task for task in asked if task not in done]
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        bench = Bench(Path(folder), options.sample_seconds)
        for place, task in enumerate(left, start=1):
            outcome = bench.run(task)
            done[task] = outcome
            with options.kept.open("a") as kept:
                kept.write(json.dumps(asdict(outcome)) + "\n")
            told = f"{task.kind} {task.effect:g}x: {outcome.verdict}, {outcome.speedup:.3f}x"
            print(
                f"{place} of {len(left)}: {told}, control {outcome.control:.3f}x, {outcome.cpu_seconds:.0f} s",
                flush=True,
            )
    print(json.dumps(figures([done[task] for task in asked if task in done])))


class Bench:
    """Two repositories, one pure and one compiled, and their images."""

    def __init__(self, folder: Path, sample_seconds: float) -> None:
        self._engine = ProcessEngine(folder / "engine", ResourceLimits())
        self._repositories = {compiled: folder / f"repository{compiled:d}" for compiled in (False, True)}
        self._images: dict[bool, BuiltImage] = {}
        self._sample_seconds = sample_seconds

    def run(self, task: AaTask) -> Outcome:
        """Sample and judge one task."""
        image = self._image(task.is_compiled)
        seed = random.Random(f"{task}").randrange(2**31)  # noqa: S311 - an edit, not a secret
        edit = changed(task, random.Random(seed))  # noqa: S311 - a draw, not a secret
        patch = diff(self._repositories[task.is_compiled], edit)
        plan = SamplingPlan(seconds_per_sample=self._sample_seconds, seed=seed)
        start, spent = time.monotonic(), cpu_seconds()
        log, limits = Log(None), ResourceLimits()
        with Arms.open(self._engine, image, run_id="bench", limits=limits, log=log) as arms:
            arms.prepare(changed_files(patch), patch, SuiteFiles("base"))
            budget = Budget(plan.max_seconds)
            surveys = {
                arm: {
                    benchmark.name: benchmark
                    for benchmark in remote.survey(lines={}, limit=20, budget=SURVEY_SECONDS).benchmarks
                }
                for arm, remote in arms.remotes.items()
            }
            candidates = [
                Candidate({arm: surveys[arm][name] for arm in Arm}, executes_change=True) for name in surveys[Arm.BASE]
            ]
            with Cores().reserved(arms.remotes[Arm.BASE].idlest_core) as core:
                taken = sample(
                    arms, candidates, is_compiled=task.is_compiled, plan=plan, budget=budget, core=core, log=log
                )
        judged = taken.judged
        return Outcome(
            task=task,
            verdict=judged.verdict.value,
            speedup=judged.speedup,
            control=judged.control_speedup,
            unit=taken.rule.unit.value,
            rounds=taken.rounds,
            disturbed=judged.disturbed,
            cpu_seconds=round(cpu_seconds() - spent, 1),
            seconds=round(time.monotonic() - start, 1),
            machine=taken.machine,
        )

    def _image(self, compiled: bool) -> BuiltImage:
        if compiled not in self._images:
            repository = self._repositories[compiled]
            base = commit(repository, files(compiled=compiled))
            self._images[compiled] = build(self._engine, repository, base)
        return self._images[compiled]


def cpu_seconds() -> float:
    """What this process and its ended children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def read(kept: Path) -> dict[AaTask, Outcome]:
    """What was measured before."""
    if not kept.exists():
        return {}
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    outcomes = [Outcome(**{**row, "task": AaTask(**row["task"])}) for row in rows]
    return {outcome.task: outcome for outcome in outcomes}


def figures(outcomes: list[Outcome]) -> dict[str, object]:
    """False accepts with their interval, power by effect, cost."""
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
        cost = [outcome for outcome in outcomes if outcome.task.kind.startswith(f"{kind} ")]
        if cost:
            told[f"cpu_seconds_{kind}"] = round(sum(outcome.cpu_seconds for outcome in cost) / len(cost), 1)
            told[f"seconds_{kind}"] = round(sum(outcome.seconds for outcome in cost) / len(cost), 1)
    told["machine"] = outcomes[-1].machine if outcomes else ""
    return told


if __name__ == "__main__":
    sys.exit(main())
