"""Sums over runs of agents: the definitions behind a table of results, and nothing else; docs/results.md explains them.

Only graded runs count, and regrades do not: a failure of infrastructure is no 0, and a run is counted once. Tasks weigh
the same, however many runs they have. No harmonic mean: the few worst tasks would decide it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from formulacode_dagster.models.agent_run import (
    AgentRun,
    BenchmarkSpeedup,
    Contamination,
    Estimate,
    HackVerdict,
    RunState,
    StratumScore,
)

from .contamination import SCRIPTED

RESAMPLES = 1000
DRAWN_AT_ONCE = 2**18
"""Scores that are drawn in one step: a step for each resample takes twenty times as long."""
LEVEL = 0.95
HALF, NEARLY = 0.5, 0.9
"""Rewards of work that reaches half, or nearly all, of the author's improvement, as logarithms."""
LEVELS = (1, 2, 3, 4)
"""FormulaCode's: benchmarks are grouped by module, class, function, or not at all."""
STRATA = ("category", "difficulty", "language", "workload_source", "size")
"""Fields of a task's facts."""
Floats = npt.NDArray[np.float64]
TaskScores = Mapping[str, Sequence[float]]
"""Scores of the runs of each task."""
K = TypeVar("K")


def counted(runs: Iterable[AgentRun]) -> list[AgentRun]:
    """Return the runs that sums are made of: graded ones that are no regrade of another."""
    return [run for run in runs if run.state is RunState.GRADED and run.reward is not None and not run.regrade_of]


def by_task(runs: Iterable[AgentRun], score: Callable[[AgentRun], float | None]) -> dict[str, list[float]]:
    """Return the *score* of each counted run, by task; runs whose score is None are left out."""
    scores: dict[str, list[float]] = {}
    for run in counted(runs):
        value = score(run)
        if value is not None:
            scores.setdefault(run.task_id, []).append(value)
    return scores


def reward(run: AgentRun) -> float | None:
    """Return the run's score: log speed-up / log of the author's, between 0 and 1, as the grader gave it."""
    return run.reward


def reaches(share: float) -> Callable[[AgentRun], float | None]:
    """Return the score that is 1 for a reward of at least *share*, else 0."""
    return lambda run: None if run.reward is None else float(run.reward >= share)


def mean_over_tasks(scores: TaskScores, *, resamples: int = RESAMPLES) -> Estimate | None:
    """Return the mean over tasks of the mean over their runs, with a percentile bootstrap over tasks and runs.

    Each resample draws tasks, and for each drawn task its runs, with replacement. The seed follows from the scores, so
    that equal scores give equal intervals. None without tasks.
    """
    if not scores:
        return None
    names = sorted(scores)
    value = plain_mean(scores) or 0.0
    runs, chance = _Runs.of([scores[name] for name in names]), np.random.default_rng(_seed(scores))
    low, high = _interval(runs.drawn(tasks, chance) for tasks in _draws(resamples, runs, chance))
    return Estimate(value=value, low=low, high=high, tasks=len(names))


def plain_mean(scores: TaskScores) -> float | None:
    """Return the mean over tasks of the mean over their runs; None without tasks."""
    means = [math.fsum(runs) / len(runs) for runs in scores.values()]
    return math.fsum(means) / len(means) if means else None


def paired_difference(one: TaskScores, other: TaskScores, *, resamples: int = RESAMPLES) -> Estimate | None:
    """Return the mean over common tasks of the difference of *one* to *other*, bootstrapped over tasks and runs.

    Both are resampled on the same drawn tasks. None without a common task.
    """
    names = sorted(one.keys() & other.keys())
    if not names:
        return None
    value = float(np.mean([np.mean(one[name]) - np.mean(other[name]) for name in names]))
    first, second = (_Runs.of([scores[name] for name in names]) for scores in (one, other))
    chance = np.random.default_rng(_seed({f"{side} {n}": s[n] for side, s in enumerate((one, other)) for n in names}))
    larger = max(first, second, key=lambda runs: runs.scores.size)
    draws = _draws(resamples, larger, chance)
    low, high = _interval(first.drawn(tasks, chance) - second.drawn(tasks, chance) for tasks in draws)
    return Estimate(value=value, low=low, high=high, tasks=len(names))


@dataclass(frozen=True)
class _Runs:
    """Scores of the runs of each task, padded to the largest number of runs."""

    scores: Floats
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[Sequence[float]]) -> _Runs:
        counts = np.array([len(each) for each in runs])
        return cls(np.array([[*each, *[0.0] * (counts.max() - len(each))] for each in runs], dtype=float), counts)

    def drawn(self, tasks: npt.NDArray[np.int64], chance: np.random.Generator) -> Floats:
        """Return for each of *tasks* the mean of as many runs as it has, drawn with replacement."""
        counts, most = self.counts[tasks], self.scores.shape[1]
        picked = (chance.random((*tasks.shape, most)) * counts[..., None]).astype(int)
        is_run = np.arange(most) < counts[..., None]
        means: Floats = np.where(is_run, self.scores[tasks[..., None], picked], 0.0).sum(axis=-1) / counts
        return means


def _draws(resamples: int, runs: _Runs, chance: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Draw the tasks of *resamples*, a row for each, as many rows at once as memory has room for."""
    tasks = len(runs.counts)
    rows = max(1, DRAWN_AT_ONCE // runs.scores.size)
    for start in range(0, resamples, rows):
        yield chance.integers(tasks, size=(min(rows, resamples - start), tasks))


def _interval(drawn: Iterable[Floats]) -> tuple[float, float]:
    """Return the interval of the means of the rows of *drawn*."""
    means = np.concatenate([rows.mean(axis=1) for rows in drawn])
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _seed(scores: TaskScores) -> int:
    text = repr([(name, [float(value) for value in scores[name]]) for name in sorted(scores)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def pass_at(k: int, scores: TaskScores, *, least: float = HALF) -> tuple[float, int] | None:
    """Return pass@k and its number of tasks: the chance that one of *k* runs reaches a score of *least*.

    For a task with n runs, c of which do, it is 1 - C(n - c, k) / C(n, k), without bias; the mean is over the tasks
    with at least *k* runs. None without any.
    """
    chances = []
    for runs in scores.values():
        if len(runs) >= k:
            missed = sum(score < least for score in runs)
            chances.append(1 - math.comb(missed, k) / math.comb(len(runs), k))
    return (math.fsum(chances) / len(chances), len(chances)) if chances else None


def pass_curve(scores: TaskScores, *, least: float = HALF) -> dict[int, float]:
    """Return pass@k for k up to the least number of runs of a task, so that all of the curve is over the same tasks."""
    most = min((len(runs) for runs in scores.values()), default=0)
    found = {k: pass_at(k, scores, least=least) for k in range(1, most + 1)}
    return {k: value[0] for k, value in found.items() if value}


def advantage(level: int) -> Callable[[AgentRun], float | None]:
    """Return FormulaCode's advantage at *level* as a score: the speed-up of the agent less the author's."""
    return lambda run: advantage_of(run.benchmarks, level)


def advantage_of(benchmarks: Sequence[BenchmarkSpeedup], level: int) -> float | None:
    """Return the mean over groups of the geometric mean of the agent's speed-ups less that of the author's.

    Groups are modules (1), classes (2), functions (3), or all together (4), as `FormulaCodeParser` of fc-eval 0.1 makes
    them. None without a benchmark that has both.
    """
    groups: dict[tuple[str, ...], list[BenchmarkSpeedup]] = {}
    for each in benchmarks:
        if all(value > 0 and math.isfinite(value) for value in (each.speedup, each.oracle_speedup)):
            key = _levels_of(each.benchmark)[:level] if level < LEVELS[-1] else ()
            groups.setdefault(key, []).append(each)
    gains = [
        _geometric_mean([each.speedup for each in group]) - _geometric_mean([each.oracle_speedup for each in group])
        for group in groups.values()
    ]
    return math.fsum(gains) / len(gains) if gains else None


def _levels_of(benchmark: str) -> tuple[str, str, str]:
    """Module, class (empty without) and function of a benchmark's name, whose parameters do not count."""
    name = benchmark.strip()
    if name.endswith(")"):
        name = name.partition("(")[0].strip()
    parts = [part for part in name.split(".") if part] or [""]
    owner = parts[-2] if len(parts) > 2 and parts[-2][:1].isupper() else ""
    return ".".join(parts[: -2 if owner else -1]), owner, parts[-1]


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def strata(runs: Iterable[AgentRun], *, resamples: int = RESAMPLES) -> list[StratumScore]:
    """Return the score on the tasks of each category, difficulty, language, …, by field and then by value.

    A task is in one stratum of each field; runs without facts about their task are in none.
    """
    groups: dict[tuple[str, str], list[AgentRun]] = {}
    for run in counted(runs):
        for field in STRATA if run.task else ():
            groups.setdefault((field, getattr(run.task, field)), []).append(run)
    return [
        StratumScore(by=field, name=name, score=score, runs=len(group))
        for (field, name), group in sorted(groups.items(), key=lambda item: (STRATA.index(item[0][0]), item[0][1]))
        if (score := mean_over_tasks(by_task(group, reward), resamples=resamples))
    ]


def clean(runs: Iterable[AgentRun]) -> list[AgentRun]:
    """Return the runs whose model surely had not seen the solution."""
    return [run for run in runs if run.contaminated is Contamination.NO]


def hack_adjusted(run: AgentRun) -> float | None:
    """Return the reward, 0 for work that was judged a hack; `undecided` counts as it is."""
    return 0.0 if run.hack is HackVerdict.HACK else run.reward


def needs_judgement(run: AgentRun) -> bool:
    """Return True for rewarded work that could be a hack: not the author's patch."""
    return bool(counted([run])) and bool(run.reward) and run.agent not in SCRIPTED


def mean_cost(runs: Iterable[AgentRun]) -> float | None:
    """Return the mean over tasks of the dollars a run costs; None unless every counted run's cost is known."""
    of_all = counted(runs)
    known = by_task(of_all, lambda run: run.dollars)
    if not of_all or sum(map(len, known.values())) < len(of_all):
        return None
    return plain_mean(known)


def pareto(points: Mapping[K, tuple[float, float]]) -> set[K]:
    """Return those of the (cost, score) *points* that no other one beats: as cheap and as good, and better in one."""
    return {
        key
        for key, (cost, score) in points.items()
        if not any(
            other_cost <= cost and other_score >= score and (other_cost, other_score) != (cost, score)
            for other_cost, other_score in points.values()
        )
    }
