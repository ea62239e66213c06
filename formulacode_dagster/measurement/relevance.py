"""Which benchmarks of a suite tell something about a patch, and which cannot be timed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.measurement import Arm, BenchmarkFailure
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.suites.locations import CodeLocation
from formulacode_dagster.suites.remote import Survey, SurveyedBenchmark

from .changed_code import ChangedCode

INSTALLED = ("/site-packages/", "/dist-packages/")
FAILED = frozenset({"error", "timeout", "crash"})
TIMEABLE = frozenset({"ran", "untraced"})
SHOWN = 5


@dataclass(frozen=True)
class Candidate:
    """A benchmark that can be timed on the arms it was surveyed on."""

    by_arm: Mapping[Arm, SurveyedBenchmark]
    executes_change: bool | None

    @property
    def name(self) -> str:
        """Asv's name, with the parameters."""
        return self.by_arm[Arm.BASE].name

    def runs_on(self, arm: Arm) -> bool:
        """Whether it was seen to run there."""
        return arm in self.by_arm and self.by_arm[arm].outcome == "ran"

    @property
    def isolate(self) -> bool:
        """Whether each call needs a setup of its own: one answer for all arms, or they would time different things."""
        return any(surveyed.isolate for surveyed in self.by_arm.values())


def comparable(base: Survey, oracle: Survey, changed: ChangedCode) -> tuple[list[Candidate], list[BenchmarkFailure]]:
    """Pair the benchmarks of base and oracle, and list those that fail.

    Raises ItemFailure: `oracle_breaks_benchmarks` when one that runs on the base fails with the oracle,
    `benchmarks_fail` when none runs on both.
    """
    failures = [*_failures(Arm.BASE, base), *_failures(Arm.ORACLE, oracle)]
    on_base = {found.name: found for found in base.benchmarks}
    on_oracle = {found.name: found for found in oracle.benchmarks}
    _raise_if_oracle_breaks(on_base, oracle)
    for name in on_base.keys() ^ on_oracle.keys():
        arm = Arm.ORACLE if name in on_base else Arm.BASE
        failures.append(BenchmarkFailure(benchmark=name, arm=arm, kind="missing", message="not defined on this arm"))
    candidates = [
        Candidate({Arm.BASE: found, Arm.ORACLE: on_oracle[name]}, _executes_change(found, on_oracle[name], changed))
        for name, found in on_base.items()
        if name in on_oracle and {found.outcome, on_oracle[name].outcome} <= TIMEABLE
    ]
    if not candidates:
        raise ItemFailure(
            FailureKind.BENCHMARKS_FAIL,
            "no benchmark runs on base and oracle",
            why=f"{len(failures)} failures" if failures else "the suite defines no time benchmark",
            log_tail="\n".join(
                f"{failure.arm} {failure.benchmark} {failure.kind}: {failure.message}" for failure in failures[:SHOWN]
            ),
        )
    return candidates, failures


def with_surveys(candidate: Candidate, surveys: Mapping[Arm, Survey]) -> Candidate:
    """*candidate* with what later *surveys* found of it."""
    found = {
        arm: benchmark
        for arm, survey in surveys.items()
        for benchmark in survey.benchmarks
        if benchmark.name == candidate.name
    }
    return Candidate({**candidate.by_arm, **found}, candidate.executes_change)


def completed(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[BenchmarkFailure]]:
    """The *candidates* that ran on every arm, and why the others did not."""
    ready, failures = [], []
    for candidate in candidates:
        stopped = next((arm for arm in Arm if not candidate.runs_on(arm)), None)
        if stopped is None:
            ready.append(candidate)
            continue
        found = candidate.by_arm.get(stopped)
        kind, message = (found.outcome, found.message) if found is not None else ("missing", "not defined on this arm")
        failures.append(BenchmarkFailure(benchmark=candidate.name, arm=stopped, kind=kind, message=message))
    return ready, failures


def disagreeing(base: Survey, oracle: Survey) -> list[str]:
    """Names of the benchmarks that ran in one survey and failed in the other, or were lost there with their module."""
    names: set[str] = set()
    for one, other in ((base, oracle), (oracle, base)):
        failed = {found.name for found in other.benchmarks if found.outcome in FAILED}
        names |= {
            found.name
            for found in one.benchmarks
            if found.outcome == "ran" and (found.name in failed or not _owners(found).isdisjoint(other.lost))
        }
    return sorted(names)


def renewed(survey: Survey, again: Survey) -> Survey:
    """*survey* with what was found when some of its benchmarks were run *again*."""
    newer = {found.name: found for found in again.benchmarks}
    kept = [newer.pop(found.name, found) for found in survey.benchmarks]
    return survey.model_copy(update={"benchmarks": (*kept, *newer.values()), "lost": again.lost})


def select(candidates: Sequence[Candidate], changed: ChangedCode, *, limit: int, seed: int) -> list[Candidate]:
    """At most *limit* of those that execute the change, spread over the benchmark functions.

    Where a compiled part of the patch cannot be traced, any benchmark may execute it, and those known to come first.
    Raises Rejection (`no_relevant_benchmark`) when none executes the change.
    """
    sure = [candidate for candidate in candidates if candidate.executes_change]
    unsure = [candidate for candidate in candidates if candidate.executes_change is None]
    relevant = (_spread(sure, seed) + _spread(unsure, seed)) if changed.untraceable or not sure else _spread(sure, seed)
    if not relevant:
        raise Rejection(
            RejectionReason.NO_RELEVANT_BENCHMARK,
            f"none of {len(candidates)} benchmarks executes a function that the patch changes",
        )
    return relevant[:limit]


def _failures(arm: Arm, survey: Survey) -> Iterable[BenchmarkFailure]:
    for name, message in survey.lost.items():
        yield BenchmarkFailure(benchmark=name, arm=arm, kind="import", message=message)
    for found in survey.benchmarks:
        if found.outcome in FAILED:
            yield BenchmarkFailure(benchmark=found.name, arm=arm, kind=found.outcome, message=found.message)


def _raise_if_oracle_breaks(on_base: Mapping[str, SurveyedBenchmark], oracle: Survey) -> None:
    """Raise when the oracle fails what runs on the base, whole modules included."""
    ran = [found for found in on_base.values() if found.outcome == "ran"]
    names = {found.name for found in ran}
    broken = {
        found.name: found.message for found in oracle.benchmarks if found.outcome in FAILED and found.name in names
    }
    owners = {owner for found in ran for owner in _owners(found)}
    broken |= {name: message for name, message in oracle.lost.items() if name in owners}
    if broken:
        shown = list(broken.items())[:SHOWN]
        raise ItemFailure(
            FailureKind.ORACLE_BREAKS_BENCHMARKS,
            f"{len(broken)} benchmarks or modules work on the base and fail with the author's patch",
            why=", ".join(name for name, _ in shown),
            remedy="Look at the messages: the patch may need an environment that the base does not",
            log_tail="\n".join(f"{name}: {message}" for name, message in shown),
        )


def _owners(found: SurveyedBenchmark) -> frozenset[str]:
    """What it is lost with: its module, its class or function."""
    return frozenset({found.module, f"{found.module}.{found.owner or found.attribute}"})


def _executes_change(base: SurveyedBenchmark, oracle: SurveyedBenchmark, changed: ChangedCode) -> bool | None:
    if executes(base, changed.base) or executes(oracle, changed.oracle):
        return True
    if changed.untraceable or not (base.traceable and oracle.traceable):
        return None
    return False


def executes(benchmark: SurveyedBenchmark, changed: frozenset[CodeLocation]) -> bool:
    """Whether a call of *benchmark* entered one of the functions *changed*."""
    return any(
        code.line == location.line and _is_file(code.file, location.path)
        for code in benchmark.codes
        for location in changed
    )


def _is_file(file: str, path: str) -> bool:
    """Whether *file*, in the checkout or where it was installed, is *path* of the repository."""
    for marker in INSTALLED:
        _, found, installed = file.rpartition(marker)
        if found:
            return path == installed or path.endswith(f"/{installed}")
    return file.endswith(f"/{path}")


def _spread(candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
    """A seeded order in which every benchmark function comes once before any comes twice."""
    generator = random.Random(seed)  # noqa: S311 - a choice, not a secret
    shuffled = generator.sample(list(candidates), len(candidates))
    seen: dict[tuple[str, str, str], int] = {}
    turns = []
    for candidate in shuffled:
        surveyed = candidate.by_arm[Arm.BASE]
        key = (surveyed.module, surveyed.owner, surveyed.attribute)
        seen[key] = seen.get(key, 0) + 1
        turns.append(seen[key])
    return [shuffled[place] for place in sorted(range(len(shuffled)), key=turns.__getitem__)]
