"""Results of agents: the leaderboard by month and stratum, every run, and the tasks of each agent."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formulacode_dagster.library import Task
from formulacode_dagster.models.agent_run import AgentResult, AgentRun, Estimate, Review, RunState
from formulacode_dagster.releasing.dataset.index import SPEEDUP_RANGES, IndexedMonth
from formulacode_dagster.releasing.reporting.funnel import Funnel
from formulacode_dagster.releasing.results import sums
from formulacode_dagster.releasing.results.table import agent_results
from formulacode_dagster.releasing.results.task_facts import facts_of

from .run_page import RUNS, RunFiles, page_of
from .tables import Bound, Column, DataTable, Facet

ALL = "all"
"""All months, or all strata."""
LEAST_TASKS = 5
"""Strata with fewer tasks, in all months or in one, have no table."""
AGENTS = "agents"
"""Folder of the agents' pages."""
ESTIMATES = {
    "score": ("Score", "mean reward, and its 95 % interval"),
    "hack_adjusted": ("Adjusted", "the score with 0 for runs that were judged a hack"),
    "clean_score": ("Clean", "the score on tasks that are newer than the model's training data"),
    "half": ("≥ 0.5", "share of runs with at least half of the author's improvement"),
    "nearly": ("≥ 0.9", "share of runs with nearly all of it"),
}
"""Means over tasks that a row may have; only those that some row has are shown."""
RESULT_FIELDS = (
    *("month", "stratum", "agent", "agent_version", "model", *ESTIMATES, "score_low", "score_high"),
    *("advantage_l1", "advantage_l2", "advantage_l3", "advantage_l4", "dollars", "is_on_front"),
    *("tasks", "release_tasks", "runs", "infrastructure", "agent_seconds", "turns"),
)
RUN_FIELDS = (
    *("month", "task_id", "release", "agent", "agent_version", "model", "source", "state", "error", "reason", "reward"),
    *("speedup", "speedup_low", "speedup_high", "oracle_speedup", "dollars", "tokens_in", "tokens_cached"),
    *("tokens_out", "turns", "agent_seconds", "contaminated", "hack", "regrade_of", "run_id"),
)
AGENT_FIELDS = (
    *("task_id", "month", "category", "difficulty", "outcome", "reward", "runs", "speedup", "oracle_speedup"),
    *("reason", "dollars", "turns", "minutes"),
)
OUTCOMES = ("like the author", "half of it", "part of it", "nothing", "not judged")
"""What an agent reached on a task, by its mean reward: at least 0.9, 0.5, more than 0, 0; or no judgement."""


@dataclass(frozen=True)
class SiteResults:
    """Runs of agents, reviews of people and funnels of months; for any tasks and months."""

    runs: Sequence[AgentRun] = ()
    reviews: Mapping[str, Sequence[Review]] = field(default_factory=dict)
    funnels: Mapping[str, Funnel] = field(default_factory=dict)
    read_run: Callable[[AgentRun], RunFiles] = lambda _: RunFiles()
    """Reads what an agent left in a run, when its page is written: all runs together may not fit into memory."""


@dataclass(frozen=True)
class ScopedResult:
    """An agent's results on the tasks of a month, or of ALL, and of a stratum, or of ALL."""

    stratum: str
    result: AgentResult

    @property
    def month(self) -> str:
        """`YYYY-MM`, or ALL."""
        return self.result.month

    @property
    def scope(self) -> tuple[str, str]:
        """Month and stratum."""
        return self.month, self.stratum


def slug_of(contestant: str) -> str:
    """Return the name of an agent's page, from any text; it stays the same as long as the text does."""
    words = re.sub(r"[^a-z0-9]+", "-", contestant.lower())[:40].strip("-")
    return f"{words or 'agent'}-{hashlib.sha256(contestant.encode()).hexdigest()[:8]}"


def strata_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the strata of a task of the dataset, by kind."""
    # a row of an older month lacks later columns
    facts = facts_of({**row, "workload_source": row.get("workload_source") or "unknown"})
    return {
        "category": facts.category.replace("_", " "),
        "difficulty": facts.difficulty,
        "language": facts.language,
        "workloads": facts.workload_source.replace("_", " "),
        "author's speed-up": facts.size,
    }


def scoped_results(
    runs: Sequence[AgentRun], months: Sequence[IndexedMonth], tasks: Mapping[str, Task]
) -> list[ScopedResult]:
    """Return the results on all tasks and on those of each stratum, of all months and of each one, the newest first."""
    tags = ", ".join(month.tag for month in months)
    scopes = [(ALL, tags), *((month.month, month.tag) for month in reversed(months) if len(months) > 1)]
    results = []
    for stratum, members in _members_by_stratum(tasks).items():
        # without facts, a row of a stratum is not divided into strata again
        facts = {} if stratum == ALL else {"task": None}
        mine = [run.model_copy(update=facts) for run in runs if stratum == ALL or run.task_id in members]
        for month, tag in scopes:
            size = sum(month in (ALL, tasks[task_id].row["month"]) for task_id in members)
            if stratum == ALL or size >= LEAST_TASKS:
                rows = agent_results([run for run in mine if month in (ALL, run.month)], month, tag, size)
                results += [ScopedResult(stratum, row) for row in rows]
    return results


def _members_by_stratum(tasks: Mapping[str, Task]) -> dict[str, set[str]]:
    """Return the tasks of ALL and of each stratum; a kind of which all tasks are the same has no strata."""
    strata = {task_id: strata_of(task.row) for task_id, task in tasks.items()}
    members = {ALL: set(tasks)}
    for kind in next(iter(strata.values()), {}):
        values = {of_task[kind] for of_task in strata.values()}
        for value in sorted(values, key=_place_of) if len(values) > 1 else ():
            members[f"{kind}: {value}"] = {task_id for task_id, of_task in strata.items() if of_task[kind] == value}
    return members


def _place_of(value: str) -> tuple[int, str]:
    return (SPEEDUP_RANGES.index(value) if value in SPEEDUP_RANGES else 0), value


def leaderboard(results: Sequence[ScopedResult]) -> DataTable:
    """Return the table of agents, of which the rows of one month, or ALL, and one stratum, or ALL, are shown."""
    rows = [_result_row(each) for each in results]
    shares = [(name, *told) for name, told in ESTIMATES.items() if any(row[name] is not None for row in rows)]
    return DataTable(
        name="results",
        noun="agents",
        columns=(
            Column("agent", "Agent", "link", small="version", href="agents", target="page"),
            *(
                Column(name, label, "share", title, low="score_low", high="score_high")
                if name == "score"
                else Column(name, label, "number", title)
                for name, label, title in shares
            ),
            *(
                Column(f"advantage_l{level}", f"L{level}", "number", f"FormulaCode's advantage, level {level}")
                for level in sums.LEVELS
            ),
            Column("dollars", "Cost", "number", "dollars a run", prefix="$"),
            Column("is_on_front", "Front", "flag", "no other agent is both as cheap and as good"),
            Column("tasks", "Tasks", "number", digits=0),
            Column("runs", "Runs", "number", digits=0),
            Column("infrastructure", "Failures", "number", "runs in which nothing was judged", digits=0),
        ),
        fields=RESULT_FIELDS,
        rows=rows,
        documents=[{"stratum": each.stratum, **each.result.model_dump(mode="json")} for each in results],
        sort="score",
        facets=(Facet("month", "Month", default=ALL), Facet("stratum", "Stratum", default=ALL)),
        bounds=(Bound("dollars", "Cost, at most $", is_least=False, step=0.01),),
        search=("agent", "version"),
    )


def _result_row(scoped: ScopedResult) -> dict[str, Any]:
    row = scoped.result
    estimates: dict[str, Estimate | None] = {name: getattr(row, name) for name in ESTIMATES}
    return {
        **row.model_dump(mode="json", include=set(RESULT_FIELDS) - set(ESTIMATES)),
        "stratum": scoped.stratum,
        "version": f"{row.agent_version} {row.model}".strip(),
        "page": slug_of(row.contestant),
        **{name: estimate.value if estimate else None for name, estimate in estimates.items()},
        "score_low": row.score.low if row.score else None,
        "score_high": row.score.high if row.score else None,
        **{f"advantage_l{level}": value for level, value in enumerate(row.advantages, start=1)},
    }


def runs_table(runs: Sequence[AgentRun]) -> DataTable:
    """Return every run, for programs."""
    rows = [run.model_dump(mode="json", include=set(RUN_FIELDS)) for run in runs]
    return DataTable("runs", "runs", (), RUN_FIELDS, rows, sort="task_id")


def agent_table(
    contestant: str, runs: Sequence[AgentRun], tasks: Mapping[str, Task], paged: Collection[str]
) -> DataTable:
    """Return the tasks that an agent has *runs* on, with its outcome on each; *paged* are the runs with a page."""
    by_task: dict[str, list[AgentRun]] = {}
    for run in runs:
        if not run.regrade_of:
            by_task.setdefault(run.task_id, []).append(run)
    return DataTable(
        name=f"{AGENTS}/{slug_of(contestant)}",
        noun="tasks",
        columns=(
            Column("task_id", "Task", "link", small="category", href="../tasks", target="task_id"),
            Column("outcome", "Outcome", order=OUTCOMES, small="reason"),
            Column("reward", "Reward", "number", "mean over runs"),
            Column("speedup", "Speed-up", "number", "of the best run", suffix="×"),
            Column("oracle_speedup", "Author", "number", "the author's speed-up in that run", suffix="×"),
            Column("runs", "Runs", "number", digits=0),
            Column("best", "Run", "link", "the best one: changes and trajectory", href=f"../{RUNS}", target="run"),
            Column("dollars", "Cost", "number", "dollars a run", prefix="$"),
            Column("turns", "Turns", "number", "median", digits=0),
            Column("minutes", "Minutes", "number", "median", digits=1),
        ),
        fields=AGENT_FIELDS,
        rows=[_task_row(tasks[task_id].row, mine, paged) for task_id, mine in sorted(by_task.items())],
        sort="reward",
        facets=(
            Facet("outcome", "Outcome"),
            Facet("month", "Month"),
            Facet("category", "Category"),
            Facet("difficulty", "Difficulty"),
        ),
        bounds=(Bound("dollars", "Cost, at most $", is_least=False, step=0.01),),
        search=("task_id",),
    )


def _task_row(task: Mapping[str, Any], runs: Sequence[AgentRun], paged: Collection[str]) -> dict[str, Any]:
    judged = sorted((run for run in runs if run.reward is not None), key=lambda run: run.reward or 0.0)
    best = judged[-1] if judged else runs[-1]
    reward = _mean([run.reward for run in judged])
    seconds = _median([run.agent_seconds for run in runs])
    return {
        "task_id": task["task_id"],
        "month": task["month"],
        "category": task["classification"],
        "difficulty": task["difficulty"],
        "outcome": outcome_of(reward),
        "reward": reward,
        "runs": len(runs),
        "best": "look" if best.run_id in paged else None,
        "run": page_of(best),
        "speedup": best.speedup,
        "oracle_speedup": best.oracle_speedup,
        "reason": best.reason if best.state is RunState.GRADED else best.error,
        "dollars": _mean([run.dollars for run in runs]),
        "turns": _median([run.turns for run in runs]),
        "minutes": None if seconds is None else seconds / 60,
    }


def outcome_of(reward: float | None) -> str:
    """Return the one of OUTCOMES that a mean *reward* is."""
    if reward is None:
        return OUTCOMES[4]
    return OUTCOMES[0 if reward >= sums.NEARLY else 1 if reward >= sums.HALF else 2 if reward > 0 else 3]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
