"""A series with its step as a small picture: SVG of numbers only, no foreign text."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT, MARGIN = 320.0, 64.0, 4.0
MOST_POINTS = 400
"""Points drawn; of a longer series every n-th is drawn, the step itself by its levels."""
POINT, LEVEL, STEP = "#7b8794", "#1f2933", "#2f855a"


def step_plot(
    points: Sequence[tuple[int, float]], *, before_revision: int, after_revision: int, before: float, after: float
) -> str:
    """*points* (revision, value) in the order of revisions, and the levels *before* and *after* the step as SVG.

    Values on a logarithmic axis if all are positive.
    """
    drawn = points[:: 1 + len(points) // MOST_POINTS]
    levels = [level for level in (before, after) if math.isfinite(level)]
    heights = [*(value for _, value in drawn), *levels]
    scale = math.log if min(heights, default=1.0) > 0 else float
    low, high = (scale(edge) for edge in (min(heights, default=0.0), max(heights, default=1.0)))
    revisions = [*(revision for revision, _ in drawn), before_revision, after_revision]
    first, last = min(revisions), max(revisions)

    def x(revision: int) -> str:
        return f"{MARGIN + (WIDTH - 2 * MARGIN) * (revision - first) / max(1, last - first):.1f}"

    def y(value: float) -> str:
        share = (scale(value) - low) / (high - low) if high > low else 0.5
        return f"{HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share:.1f}"

    dots = "".join(f"M{x(revision)} {y(value)}h0" for revision, value in drawn)
    shown = [(before, first, before_revision), (after, after_revision, last)]
    lines = "".join(f"M{x(begin)} {y(level)}H{x(end)}" for level, begin, end in shown if math.isfinite(level))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}">'
        f'<path d="{dots}" stroke="{POINT}" stroke-width="2.5" stroke-linecap="round"/>'
        f'<path d="{lines}" stroke="{LEVEL}" stroke-width="1.5" fill="none"/>'
        f'<path d="M{x(after_revision)} 0V{HEIGHT:.0f}" stroke="{STEP}" stroke-dasharray="3 2"/></svg>\n'
    )
