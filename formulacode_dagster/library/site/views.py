"""Content of the pages, from tasks of the dataset: rows of older months may lack later columns."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from formulacode_dagster.library import TableNotReleasedError, Task
from formulacode_dagster.models.identity import is_stand_in
from formulacode_dagster.models.measurement import Arm, Stacks
from formulacode_dagster.models.release import ReplayNote, TaskRecord
from formulacode_dagster.releasing.dataset.index import notes_of, standing_of
from formulacode_dagster.releasing.dataset.validity import Validity, validity
from formulacode_dagster.releasing.reporting.flames import flames_of
from formulacode_dagster.releasing.reporting.plots import interval_plot, quantity_text, samples_plot

from .markup import markdown, patch_lines

if TYPE_CHECKING:
    import polars as pl
    from markupsafe import Markup

PROFILED = 10
"""Workloads of a task whose flame graphs are drawn, which are large."""
PLOTTED = 40
"""Workloads of a task whose samples are drawn; the others have only figures."""
VARIANTS = ("statement_minimal", "statement_issue", "statement_hinted")


def replays_text(row: Mapping[str, Any]) -> str:
    """The overall result of a task's replays; `not replayed` without any."""
    verdict = standing_of(row.get("replays") or "[]")
    return verdict.replace("_", " ") if verdict else "not replayed"


@dataclass(frozen=True)
class WorkloadView:
    """A workload with its pictures."""

    name: str
    figures: dict[str, Any]
    unit: str
    interval: Markup
    samples: Markup | None
    medians: str
    """`20 ms → 10 ms`: of base and oracle; `` without samples."""
    flames: dict[str, Markup]
    """Where the time goes, by arm and benchmark; empty for a task that was not profiled."""


@dataclass(frozen=True)
class TestView:
    """A test that reaches the change."""

    __test__ = False

    name: str
    fate: str
    base: str
    oracle: str


@dataclass(frozen=True)
class TaskView:
    """All that the page of a task shows."""

    row: dict[str, Any]
    image: str | None
    replays: str
    workloads: tuple[WorkloadView, ...]
    tests: tuple[TestView, ...]
    fates: dict[str, int]
    replayed: tuple[ReplayNote, ...]
    validity: tuple[Validity, ...]
    """Of this task by machine and CPU family; empty if it was not replayed."""
    statement: Markup
    variants: dict[str, Markup]
    """Other statements of the task, by their columns."""
    probes: tuple[dict[str, Any], ...]
    """What patches get from the exported grader; empty if it was not graded."""
    patch: tuple[tuple[str, Markup], ...]
    """Lines, each with its kind: `added`, `removed`, `hunk`, `file` or ``."""
    pull_request: str
    base_commit: str
    merge_commit: str


def task_view(task: Task, web: str) -> TaskView:
    """Content of the page of *task*, with links to the GitHub at *web*."""
    row: dict[str, Any] = {**dict.fromkeys(TaskRecord.model_fields), **task.row}
    repository = quote(row["repo_name"])
    replayed = notes_of(row["replays"] or "[]")
    tests = tuple(_test(each) for each in _rows_of(task, "tests"))
    return TaskView(
        row=row,
        image=task.image,
        replays=replays_text(row),
        workloads=_workloads(task),
        tests=tests,
        fates=dict(Counter(test.fate for test in tests)),
        replayed=replayed,
        validity=validity({row["task_id"]: replayed}),
        statement=markdown(row["final_md"]),
        variants={name: markdown(row[name]) for name in VARIANTS if row[name] and row[name] != row["final_md"]},
        probes=tuple(json.loads(row["probes"] or "[]")),
        patch=tuple(patch_lines(row["patch"])),
        pull_request=f"{web}/{repository}/{_change_of(row)}",
        base_commit=f"{web}/{repository}/commit/{quote(row['pr_base_sha'])}",
        merge_commit=f"{web}/{repository}/commit/{quote(row['pr_merge_commit_sha'])}",
    )


def _change_of(row: Mapping[str, Any]) -> str:
    """GitHub's URL of the pull request, or of a commit without one."""
    number = int(row["pr_number"])
    return f"commit/{quote(row['pr_merge_commit_sha'])}" if is_stand_in(number) else f"pull/{number}"


def _rows_of(task: Task, table: str) -> list[dict[str, Any]]:
    frame = _table_of(task, table)
    return [] if frame is None else frame.to_dicts()


def _table_of(task: Task, table: str) -> pl.DataFrame | None:
    """None if the month was released before that table existed."""
    try:
        frame: pl.DataFrame = getattr(task, table)
    except TableNotReleasedError:
        return None
    return frame


def _workloads(task: Task) -> tuple[WorkloadView, ...]:
    figures = _rows_of(task, "workloads")
    if not figures:
        names, speedups = task.row.get("benchmarks") or [], task.row.get("benchmark_speedups") or []
        figures = [
            {"benchmark": name, "speedup": speedup, "low": speedup, "high": speedup}
            for name, speedup in zip(names, speedups, strict=True)
        ]
    span = max((max(each["high"], 1 / each["low"]) for each in figures if each["low"] > 0), default=1.0)
    samples, profiles = _table_of(task, "samples"), _table_of(task, "profiles")
    return tuple(
        _workload(each, span, samples if n < PLOTTED else None, profiles if n < PROFILED else None)
        for n, each in enumerate(figures)
    )


def _workload(
    figures: dict[str, Any], span: float, samples: pl.DataFrame | None, profiles: pl.DataFrame | None
) -> WorkloadView:
    unit = figures.get("unit", "seconds")
    taken = _by_arm(samples, figures["benchmark"]) if samples is not None else {}
    return WorkloadView(
        name=figures["benchmark"],
        figures=figures,
        unit=unit,
        interval=interval_plot(figures["low"], figures["speedup"], figures["high"], span=span),
        samples=samples_plot(taken, unit) if taken else None,
        medians=" → ".join(
            quantity_text(statistics.median(taken[arm]), unit) for arm in (Arm.BASE, Arm.ORACLE) if arm in taken
        ),
        flames={} if profiles is None else _flames(profiles, figures["benchmark"]),
    )


def _flames(profiles: pl.DataFrame, benchmark: str) -> dict[str, Markup]:
    """The flame graphs of *benchmark* by arm, with the seconds of a call."""
    from markupsafe import Markup

    rows = profiles.filter(profiles["benchmark"] == benchmark).to_dicts()
    stacks = {Arm(row["arm"]): Stacks(**{name: row[name] for name in Stacks.model_fields}) for row in rows}
    return {
        f"{arm}: {quantity_text(stacks[arm].seconds_per_call, 'seconds')} a call": Markup(svg)  # noqa: S704 - names are escaped there
        for arm, svg in flames_of(stacks).items()
    }


def _by_arm(samples: pl.DataFrame, benchmark: str) -> dict[Arm, Sequence[float]]:
    mine = samples.filter(samples["benchmark"] == benchmark)
    by_arm = {arm: mine.filter(mine["arm"] == arm.value)["value"].to_list() for arm in Arm}
    return {arm: values for arm, values in by_arm.items() if values}


def _test(row: dict[str, Any]) -> TestView:
    base, oracle = (_outcomes(row[side]) for side in ("base", "oracle"))
    return TestView(row["name"], row["fate"].replace("_", " "), base, oracle)


def _outcomes(runs: Sequence[str]) -> str:
    """`2 passed, 1 failed`"""
    return ", ".join(f"{count} {outcome}" for outcome, count in Counter(runs).items())
