"""Pictures of a month's results, as PNG bytes: scores with their intervals, and scores by cost."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from formulacode_dagster.models.agent_run import AgentResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, AMBER, INK, GREY = "#3b6ea5", "#b7791f", "#1f2933", "#7b8794"
DPI = 140
MOST_AGENTS = 30


def score_picture(rows: Sequence[AgentResult]) -> bytes:
    """Draw a line for each agent, the best on top: score with interval, and the hack-adjusted score if there is one."""
    from matplotlib.figure import Figure

    shown = [row for row in rows if row.score][:MOST_AGENTS]
    figure = Figure(figsize=(8, 0.4 * max(len(shown), 2) + 1), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(shown):
        if row.score is None:
            continue
        axes.hlines(place, row.score.low, row.score.high, color=BLUE, linewidth=4, alpha=0.4)
        axes.scatter([row.score.value], [place], color=BLUE, zorder=3)
        if row.hack_adjusted:
            axes.scatter([row.hack_adjusted.value], [place], color=AMBER, marker="|", s=120, zorder=4)
    names = [f"{row.contestant}, {row.tasks} tasks" for row in shown]
    axes.set_yticks(range(len(shown)), names, parse_math=False, color=INK)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    has_adjusted = any(row.hack_adjusted for row in shown)
    _plain(axes, "score, with 95 % interval" + ("; the stroke is hack-adjusted" if has_adjusted else ""))
    return _png(figure)


def cost_picture(rows: Sequence[AgentResult]) -> bytes | None:
    """Draw each agent by dollars a run and score, those of the Pareto front in colour; None without a known cost."""
    from matplotlib.figure import Figure

    points = [(row, row.dollars, row.score.value) for row in rows if row.score and row.dollars is not None]
    if not points:
        return None
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for row, dollars, score in points:
        axes.scatter([dollars], [score], color=BLUE if row.is_on_front else GREY, zorder=3, clip_on=False)
        axes.annotate(
            row.contestant, (dollars, score), xytext=(6, 4), textcoords="offset points", size=8, parse_math=False
        )
    axes.set_ylim(-0.02, 1.05)
    axes.set_xlim(left=0)
    axes.set_xlabel("dollars a run")
    _plain(axes, "score by cost; blue: no other agent is as cheap and as good")
    return _png(figure)


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", size=10, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
