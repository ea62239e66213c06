"""The pictures of a monthly report, as PNG bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulacode_dagster.models.measurement import Verdict

from .facts import ReportFacts, TaskSpeedup
from .funnel import Funnel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREEN, RED = "#3b6ea5", "#2f855a", "#b5494b"
AMBER = "#b7791f"
INK, GREY, PALE = "#1f2933", "#7b8794", "#e4e7eb"
VERDICT_COLOURS = {
    Verdict.FASTER: GREEN,
    Verdict.TRADE_OFF: AMBER,
    Verdict.UNCHANGED: BLUE,
    Verdict.SLOWER: RED,
    Verdict.INCONCLUSIVE: GREY,
}
DPI = 140
SHOWN_TASKS = 30
SHOWN_REASONS = 3


@dataclass(frozen=True)
class Charts:
    """The pictures of one month, as PNG."""

    funnel: bytes
    speedups: bytes


def draw_charts(facts: ReportFacts) -> Charts:
    """Both pictures of *facts*."""
    return Charts(funnel_chart(facts.funnel), speedup_chart(facts))


def funnel_chart(funnel: Funnel) -> bytes:
    """Horizontal bars, one per step: the remaining number, and the main reason for the losses."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.46 * len(funnel.steps) + 0.7), layout="constrained")
    axes = figure.subplots()
    counts = [step.count for step in funnel.steps]
    widest = max(counts, default=0) or 1
    rows = range(len(counts))
    axes.barh(rows, [widest] * len(counts), color=PALE, height=0.66)
    axes.barh(rows, counts, color=[GREEN if step.name == "published" else BLUE for step in funnel.steps], height=0.66)
    for row, step in enumerate(funnel.steps):
        said = axes.annotate(
            f"{step.count:,}",
            (step.count, row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
            color=INK,
        )
        axes.annotate(
            _lost(funnel, step.name),
            (1, 0.5),
            xycoords=said,
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            size=8,
            color=GREY,
            parse_math=False,
        )
    axes.set_yticks(list(rows), [step.title for step in funnel.steps])
    axes.set_ylim(len(counts) - 0.5, -0.6)
    axes.set_xlim(0, widest * 1.01)
    axes.set_xticks([])
    _plain(axes, f"Funnel of {funnel.month}")
    return _png(figure)


def speedup_chart(facts: ReportFacts) -> bytes:
    """One row a measured pull request: speed-up with its interval, benchmarks and control, on a logarithmic axis."""
    from matplotlib.figure import Figure

    tasks = facts.measured[:SHOWN_TASKS]
    figure = Figure(figsize=(9, 0.32 * max(len(tasks), 2) + 1.5), layout="constrained")
    axes = figure.subplots()
    of = f", the {len(tasks)} largest of {len(facts.measured)}" if len(tasks) < len(facts.measured) else ""
    _plain(axes, f"Measured speed-ups of {facts.month}{of}")
    if tasks:
        _draw_tasks(axes, tasks)
        figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8.5, labelcolor=INK)
    else:
        axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_xticks([])
        axes.set_yticks([])
    return _png(figure)


def ratio_text(ratio: float) -> str:
    """`1.34×`, `12.5×`, `80×`: three significant digits."""
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.1f}×" if ratio < 50 else f"{ratio:,.0f}×"


def _draw_tasks(axes: Axes, tasks: Sequence[TaskSpeedup]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    rows = range(len(tasks))
    values = [task.speedup for task in tasks]
    colours = [VERDICT_COLOURS[task.verdict] for task in tasks]
    axes.axvline(1.0, color=GREY, linewidth=1, zorder=1)
    for row, task in zip(rows, tasks, strict=True):
        axes.scatter(task.ratios, [row] * len(task.ratios), s=14, color=colours[row], alpha=0.25, zorder=2, linewidth=0)
    lows, highs = [task.low for task in tasks], [task.high for task in tasks]
    axes.hlines(rows, lows, highs, color=colours, linewidth=3, alpha=0.5, zorder=2)
    axes.scatter([], [], s=14, color=INK, alpha=0.3, linewidth=0, label="one benchmark")
    axes.scatter([task.control for task in tasks], rows, s=60, color=INK, marker="|", zorder=4, label="control")
    for verdict, colour in VERDICT_COLOURS.items():
        chosen = [row for row in rows if tasks[row].verdict is verdict]
        if chosen:
            label = verdict.replace("_", "-")
            axes.scatter([values[row] for row in chosen], chosen, s=46, color=colour, zorder=3, label=label)
    for row, task in zip(rows, tasks, strict=True):
        right = max(values[row], task.high, task.control, *task.ratios, 1.0)
        text = ratio_text(values[row])
        axes.annotate(text, (right, row), xytext=(9, 0), textcoords="offset points", va="center", size=8, color=INK)
    everything = [1.0, *values, *lows, *highs, *(task.control for task in tasks)]
    everything += [ratio for task in tasks for ratio in task.ratios]
    low, high = min(0.8, min(everything) * 0.9), max(2.0, max(everything) * 1.35)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.grid(axis="x", color=PALE, zorder=0)
    axes.set_axisbelow(True)
    axes.set_yticks(list(rows), [task.item for task in tasks], parse_math=False)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xlabel("time before / time after", color=GREY, size=9)


def _ticks(low: float, high: float) -> list[float]:
    """Round ratios from *low* to *high*, few enough not to touch each other."""
    if high / low < 5:
        candidates: Sequence[float] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4)
    elif high / low < 1000:
        candidates = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    else:
        candidates = [10.0**power for power in range(-6, 13)]
    return [tick for tick in candidates if low <= tick <= high]


def _lost(funnel: Funnel, step: str) -> str:
    losses = funnel.lost_before(step)
    labels = [f"\N{MINUS SIGN}{loss.count:,} {loss.reason.replace('_', ' ')}" for loss in losses[:SHOWN_REASONS]]
    rest = sum(loss.count for loss in losses[SHOWN_REASONS:])
    return ", ".join([*labels, *([f"\N{MINUS SIGN}{rest:,} others"] if rest else [])])


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", color=INK, weight="bold", size=11)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelcolor=INK)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
