"""Two sets of breakpoints as a picture: their ratios against each other, and Bland–Altman."""

from __future__ import annotations

import io
import math

import numpy as np

from .replication import Replication

POINT, LINE, INK = "#2f6f9f", "#b5494b", "#1f2933"
DPI = 110


def draw_replication(replication: Replication) -> bytes:
    """The ratios of the pairs of *replication*, and their differences over their means, as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=DPI)
    left, right = figure.subplots(1, 2)
    logs = np.log2(replication.pairs.select("reference_ratio", "other_ratio").to_numpy())
    x, y = logs[:, 0], logs[:, 1]
    ends = [min(logs.min(), 0.0) - 0.1, max(logs.max(), 0.0) + 0.1] if len(logs) else [-1.0, 1.0]
    left.plot(ends, ends, color=INK, linewidth=0.8)
    left.scatter(x, y, s=12, color=POINT, alpha=0.7, linewidth=0)
    left.axhline(0, color=INK, linewidth=0.4)
    left.axvline(0, color=INK, linewidth=0.4)
    left.set_xlabel(f"log₂ after / before, {replication.reference}", parse_math=False)
    left.set_ylabel(f"log₂ after / before, {replication.other}", parse_math=False)
    left.set_title(f"{len(x)} steps that both have", loc="left", color=INK)
    right.scatter((x + y) / 2, y - x, s=12, color=POINT, alpha=0.7, linewidth=0)
    for value, style in ((replication.bias.estimate, "-"), (replication.bias.low, "--"), (replication.bias.high, "--")):
        if value is not None:
            right.axhline(math.log2(value), color=LINE, linestyle=style, linewidth=1)
    right.set_xlabel("mean of both, log₂")
    right.set_ylabel("other - reference, log₂")
    right.set_title("Bland–Altman: bias and limits of agreement", loc="left", color=INK)
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()
