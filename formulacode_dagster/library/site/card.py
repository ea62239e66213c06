"""The picture of a link to the site, for chats and social networks: 1200 by 630 pixels, PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence

SIZE, DPI = (12.0, 6.3), 100
MOST_NAME = 34
"""Characters of an agent's name."""
INK, GREY, PALE, BLUE = "#1f2933", "#616e7c", "#e4e7eb", "#3b6ea5"


def social_card(dataset: str, tasks: int, months: int, agents: Sequence[tuple[str, float]]) -> bytes:
    """Return the picture: the size of the dataset, and the scores of the best of *agents*."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")

    def write(x: float, y: float, text: str, size: float, colour: str = INK, weight: str = "normal") -> None:
        figure.text(x, y, text, size=size, color=colour, va="center", parse_math=False, weight=weight)

    write(0.06, 0.84, "FormulaCode", 44, weight="bold")
    write(0.06, 0.71, f"{tasks:,} tasks in {months} months: make real code faster", 22)
    write(0.06, 0.63, dataset[:60], 15, GREY)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.patch.set_alpha(0)
    for place, (name, score) in enumerate(agents[:4]):
        y = 0.48 - 0.11 * place
        short = name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…"
        write(0.06, y, "".join(letter if letter.isprintable() else " " for letter in short), 18)
        axes.barh(y, 0.3, left=0.5, height=0.05, color=PALE)
        axes.barh(y, 0.3 * max(0.0, min(1.0, score)), left=0.5, height=0.05, color=BLUE)
        write(0.83, y, f"{score:.3f}", 18, weight="bold")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return buffer.getvalue()
