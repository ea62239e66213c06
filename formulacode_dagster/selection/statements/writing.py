"""The variants of a problem statement, written from a view by a template: the same view gives the same text."""

from __future__ import annotations

import re

from formulacode_dagster.models.measurement import Metric

from .base_run import BaseRun, TimedWorkload
from .templates import render
from .view import WriterView

TEMPLATE = "problem_statement.md.j2"
TEMPLATE_HINTED = "problem_statement_hinted.md.j2"
TEMPLATE_VERSION = "7"
"""Raise it with any change of the template, of the view's contents, or of what is kept out of the text."""

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def write_minimal(view: WriterView) -> str:
    """Return the goal only: the repository, and that it should run faster."""
    return _rendered(view.only(()))


def write_issue(view: WriterView) -> str | None:
    """Return the goal, and the symptom as users reported it; None if nobody did."""
    return _rendered(view) if view.issues else None


def with_report(view: WriterView, report: str) -> str:
    """The goal, and the symptom in the words of *report*."""
    return _rendered(view.only(()), report.strip())


def write_hinted(statement: str, run: BaseRun) -> str:
    """Return *statement* with the results of running the base: the workloads, their times, and hot spots."""
    values = {
        "statement": statement.strip(),
        "machine": run.machine,
        "workloads": [{"name": workload.name, "value": _value(workload)} for workload in run.workloads],
        "sources": [{"name": name, "text": text, "fence": _fence(text)} for name, text in run.sources.items()],
        "profiles": [
            {
                "name": workload.name,
                "functions": [
                    {
                        "name": hot.function,
                        "place": f"{hot.file}:{hot.line}" if hot.file else "",
                        "own": f"{hot.own:.0%}",
                        "cumulative": f"{hot.cumulative:.0%}",
                    }
                    for hot in workload.functions
                ],
            }
            for workload in run.slowest
        ],
    }
    return render(TEMPLATE_HINTED, values)


def _value(workload: TimedWorkload) -> str:
    match workload.quantity.metric:
        case Metric.TIME:
            return _duration(workload.value)
        case Metric.TRACKED:
            return f"{workload.value:.6g} {workload.quantity.unit}"
        case Metric.PEAK_MEMORY:
            return f"{workload.value / 1e6:.4g} MB at the process's peak"
        case Metric.MEMORY:
            return f"{workload.value:.0f} bytes, returned"


def _duration(seconds: float) -> str:
    """Format with three figures, in the largest unit with at least one."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if seconds >= scale), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def _fence(text: str) -> str:
    """One that *text* cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _rendered(view: WriterView, report: str = "") -> str:
    return render(TEMPLATE, {**view.model_dump(), "report": report})
