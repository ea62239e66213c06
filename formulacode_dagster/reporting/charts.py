"""The pictures of a monthly report, as PNG bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from .facts import MonthFacts
from .funnel import Funnel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, GREEN, GREY, RED = "#3b6ea5", "#3f8f5f", "#9aa5b1", "#b5494b"
DPI = 110
SHOWN_TASKS = 30


def funnel_chart(funnel: Funnel) -> bytes:
    """Horizontal bars, one a step, with counts and what was lost on the way."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.45 * len(funnel.steps) + 1.1), layout="constrained")
    axes = figure.subplots()
    titles = [step.title for step in funnel.steps]
    counts = [step.count for step in funnel.steps]
    colours = [GREEN if step.name == "published" else BLUE for step in funnel.steps]
    axes.barh(titles, counts, color=colours)
    axes.invert_yaxis()
    widest = max(counts, default=0) or 1
    for row, count in enumerate(counts):
        axes.text(count + widest * 0.01, row, str(count), va="center")
    axes.set_xlim(0, widest * 1.12)
    axes.set_title(f"Funnel of {funnel.month}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return _png(figure)


def speedup_chart(facts: MonthFacts) -> bytes:
    """One row a measured pull request: its speed-up, and the placebo's ratio beside it, on a logarithmic axis."""
    from matplotlib.figure import Figure

    tasks = facts.measured[:SHOWN_TASKS]
    figure = Figure(figsize=(8, 0.3 * max(len(tasks), 2) + 1.4), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1.0, color=GREY, linewidth=1)
    if tasks:
        rows = range(len(tasks))
        values = [task.speedup if task.is_faster else task.best for task in tasks]
        axes.scatter(values, rows, color=[GREEN if task.is_faster else RED for task in tasks], zorder=3)
        axes.scatter([task.placebo for task in tasks], rows, color=GREY, marker="|", zorder=2)
        axes.set_yticks(list(rows), [task.item for task in tasks])
        axes.set_xscale("log")
        axes.invert_yaxis()
    else:
        axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center")
        axes.set_yticks([])
    axes.set_xlabel("time before / time after (green: really faster, red: not, |: placebo)")
    axes.set_title(f"Measured speed-ups of {facts.month}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
