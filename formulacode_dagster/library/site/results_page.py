"""The page of results: a table of agents for each release month, its data, and what a task's page shows of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formulacode_dagster.models.agent_run import AgentResult, AgentRun, Review
from formulacode_dagster.releasing.dataset.index import IndexedMonth
from formulacode_dagster.releasing.results.table import agent_results

from .plots import share_plot

if TYPE_CHECKING:
    from markupsafe import Markup

ALL = "all"
"""Scope of the table over several months."""
RESULT_COLUMNS = (
    *("scope", "agent", "agent_version", "model", "score", "score_low", "score_high", "half", "nearly"),
    *("advantage_l1", "advantage_l2", "advantage_l3", "advantage_l4", "dollars", "is_on_front"),
    *("tasks", "release_tasks", "runs", "infrastructure", "agent_seconds", "turns"),
)
RUN_COLUMNS = (
    *("month", "task_id", "release", "agent", "agent_version", "model", "source", "state", "error", "reason", "reward"),
    *("speedup", "speedup_low", "speedup_high", "oracle_speedup", "dollars", "tokens_in", "tokens_cached"),
    *("tokens_out", "turns", "agent_seconds", "regrade_of", "run_id"),
)
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""Signs with which a spreadsheet takes a text for a formula."""


@dataclass(frozen=True)
class SiteResults:
    """Runs of agents and reviews of people, for any tasks."""

    runs: Sequence[AgentRun] = ()
    reviews: Mapping[str, Sequence[Review]] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultLine:
    """An agent in a table, with its picture."""

    result: AgentResult
    interval: Markup | None


@dataclass(frozen=True)
class ResultTable:
    """The agents on the tasks of one month, or of all."""

    scope: str
    tasks: int
    releases: tuple[str, ...]
    lines: tuple[ResultLine, ...]


def result_tables(runs: Sequence[AgentRun], months: Sequence[IndexedMonth]) -> list[ResultTable]:
    """Return a table for each of *months* with *runs*, the newest first, after one of all if there are several."""
    by_month = {month.month: [run for run in runs if run.month == month.month] for month in months}
    shown = [month for month in reversed(months) if by_month[month.month]]
    tables = [_table(month.month, by_month[month.month], [month]) for month in shown]
    return [_table(ALL, runs, shown), *tables] if len(shown) > 1 else tables


def _table(scope: str, runs: Sequence[AgentRun], months: Sequence[IndexedMonth]) -> ResultTable:
    tasks, tags = sum(month.tasks for month in months), tuple(month.tag for month in months)
    rows = agent_results(runs, scope, ", ".join(tags), tasks)
    lines = tuple(
        ResultLine(row, share_plot(row.score.low, row.score.value, row.score.high) if row.score else None)
        for row in rows
    )
    return ResultTable(scope, tasks, tags, lines)


def data_files(tables: Sequence[ResultTable], runs: Sequence[AgentRun]) -> dict[str, str]:
    """Return the tables and the runs as CSV and JSON, by file name."""
    results = [line.result for table in tables for line in table.lines]
    return {
        "results.json": json.dumps([row.model_dump(mode="json") for row in results], indent=1) + "\n",
        "results.csv": _csv(RESULT_COLUMNS, [_flat(row) for row in results]),
        "runs.csv": _csv(RUN_COLUMNS, [run.model_dump(mode="json", include=set(RUN_COLUMNS)) for run in runs]),
    }


def _flat(row: AgentResult) -> dict[str, Any]:
    score = row.score
    return {
        **row.model_dump(mode="json", include=set(RESULT_COLUMNS) - {"score", "half", "nearly"}),
        "scope": row.month,
        "score": score.value if score else None,
        "score_low": score.low if score else None,
        "score_high": score.high if score else None,
        "half": row.half.value if row.half else None,
        "nearly": row.nearly.value if row.nearly else None,
        **{f"advantage_l{level}": value for level, value in enumerate(row.advantages, start=1)},
    }


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """*value*, unless a spreadsheet would compute it: then with an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
