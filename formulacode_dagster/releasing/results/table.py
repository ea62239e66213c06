"""The table of results: a row for each agent, version and model."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from formulacode_dagster.models.agent_run import AgentResult, AgentRun, Estimate, RunState

from . import sums


def agent_results(runs: Sequence[AgentRun], month: str, release: str, release_tasks: int) -> list[AgentResult]:
    """Return a row for each agent that has *runs*, the best first; those without a counted run last."""
    by_contestant: dict[str, list[AgentRun]] = {}
    for run in runs:
        by_contestant.setdefault(run.contestant, []).append(run)
    rows = [_row(name, mine, month, release, release_tasks) for name, mine in by_contestant.items()]
    points = {row.contestant: (row.dollars, row.score.value) for row in rows if row.score and row.dollars is not None}
    front = sums.pareto(points)
    placed = [row.model_copy(update={"is_on_front": row.contestant in front}) for row in rows]
    return sorted(placed, key=lambda row: (-row.score.value if row.score else 1.0, row.contestant))


def _row(name: str, runs: Sequence[AgentRun], month: str, release: str, release_tasks: int) -> AgentResult:
    counted, first = sums.counted(runs), runs[0]
    scores = sums.by_task(runs, sums.reward)
    advantages = (sums.by_task(runs, sums.advantage(level)) for level in sums.LEVELS)
    return AgentResult(
        month=month,
        contestant=name,
        agent=first.agent,
        agent_version=first.agent_version,
        model=first.model,
        release=release,
        release_tasks=release_tasks,
        tasks=len(scores),
        runs=len(counted),
        infrastructure=sum(run.state is RunState.INFRASTRUCTURE for run in runs),
        regrades=sum(bool(run.regrade_of) for run in runs if run.state is RunState.GRADED),
        score=sums.mean_over_tasks(scores),
        clean_score=sums.mean_over_tasks(sums.by_task(sums.clean(runs), sums.reward)),
        contamination=dict(Counter(run.contaminated for run in counted)),
        hack_adjusted=_hack_adjusted(runs),
        hack_verdicts=dict(Counter(run.hack for run in counted if run.hack)),
        strata=tuple(sums.strata(runs)),
        half=sums.mean_over_tasks(sums.by_task(runs, sums.reaches(sums.HALF))),
        nearly=sums.mean_over_tasks(sums.by_task(runs, sums.reaches(sums.NEARLY))),
        advantages=tuple(sums.plain_mean(by_task) for by_task in advantages),
        pass_curve=sums.pass_curve(scores),
        dollars=sums.mean_cost(runs),
        is_on_front=False,
        agent_seconds=_median(counted, lambda run: run.agent_seconds),
        turns=_median(counted, lambda run: run.turns),
        reasons=dict(Counter(run.reason for run in counted).most_common()),
    )


def _hack_adjusted(runs: Sequence[AgentRun]) -> Estimate | None:
    """Return the adjusted score; None unless there is a verdict on each run that needs one, and there is such a run."""
    needed = [run for run in runs if sums.needs_judgement(run)]
    if not needed or any(run.hack is None for run in needed):
        return None
    return sums.mean_over_tasks(sums.by_task(runs, sums.hack_adjusted))


def _median(runs: Sequence[AgentRun], figure: Callable[[AgentRun], float | None]) -> float | None:
    known = [value for run in runs if (value := figure(run)) is not None]
    return statistics.median(known) if known else None
