"""Samples and intervals as small pictures, drawn with the site: SVG of numbers only, no text of a row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from formulacode_dagster.models.measurement import Arm

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH = 220.0
ROW = 14.0
MARGIN = 5.0
WIDEST_LINEAR = 5.0
"""Ratio of the largest to the least value from which an axis is logarithmic."""
FINITE = 1e300

_STEPS = {
    "seconds": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bytes": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}


def quantity_text(value: float, unit: str) -> str:
    """*value* with three digits and the step of *unit* that suits it: `1.25 ms`, `3.2 MiB`, `12.5 items`."""
    steps = _STEPS.get(unit)
    if steps is None:
        return f"{value:.3g} {unit}".rstrip()
    scale, name = next((step for step in steps if value >= step[0]), steps[-1])
    return f"{value / scale:.3g} {name}"


def interval_plot(low: float, estimate: float, high: float, *, span: float, author: float | None = None) -> Markup:
    """A ratio and its interval on a logarithmic axis that reaches *span* to either side of 1; red if below 1.

    The *author*'s ratio, if given, is a stroke.
    """
    reach = math.log(max(span, 1.01))

    def x(value: float) -> float:
        place = max(-1.0, min(1.0, math.log(value) / reach)) if 0 < value < FINITE else -1.0
        return WIDTH / 2 + place * (WIDTH / 2 - MARGIN)

    middle = ROW / 2
    kind = "good" if low > 1 else "bad" if high < 1 else "open"
    text, stroke = f"{estimate:.2f}×, 95 % from {low:.2f}× to {high:.2f}×", ""
    if author is not None:
        text += f"; the author {author:.2f}×"
        stroke = f'<path class="author" d="M{x(author):.1f} 1V{ROW - 1:.0f}"/>'
    return _svg(
        ROW,
        text,
        f'<path class="axis" d="M{WIDTH / 2:.1f} 0V{ROW:.0f}"/>{stroke}'
        f'<path class="interval {kind}" d="M{x(low):.1f} {middle}H{x(high):.1f}"/>'
        f'<circle class="{kind}" cx="{x(estimate):.1f}" cy="{middle}" r="3.5"/>',
    )


def attempt_plot(low: float, estimate: float, high: float, author: float) -> Markup:
    """An agent's speed-up and its interval on a logarithmic axis, with the author's as a stroke."""
    known = [value for value in (low, estimate, high, author) if 0 < value < FINITE]
    span = max([1.0, *known, *(1 / value for value in known)])
    return interval_plot(low, estimate, high, span=span, author=author)


def cost_plot(points: Sequence[tuple[float, float, bool]]) -> Markup:
    """Points of (dollars, score, whether on the front), numbered in their order; the cost's axis is logarithmic."""
    width, height, left, bottom = 360.0, 260.0, 34.0, 26.0
    known = [dollars for dollars, _, _ in points if dollars > 0] or [1.0]
    has_free = any(dollars <= 0 for dollars, _, _ in points)
    # what costs nothing stands a decade left of the rest
    first, last = math.floor(math.log10(min(known))) - has_free, math.ceil(math.log10(max(known)))
    last = max(last, first + 1)

    def x(dollars: float) -> float:
        place = (math.log10(dollars) - first) / (last - first) if dollars > 0 else 0.0
        return left + 12 + place * (width - left - 44)

    def y(score: float) -> float:
        return 12 + (1 - max(0.0, min(1.0, score))) * (height - bottom - 20)

    parts = [f'<path class="axis" d="M{left} 4V{height - bottom}H{width - 4}"/>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<text x="{left - 5}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for power in range(first, last + 1):
        price = 0.0 if has_free and power == first else 10.0**power
        parts.append(f'<text x="{x(price):.1f}" y="{height - 9}" text-anchor="middle">${price:g}</text>')
    for number, (dollars, score, is_on_front) in enumerate(points, start=1):
        kind = "front" if is_on_front else "behind"
        parts.append(
            f'<circle class="{kind}" cx="{x(dollars):.1f}" cy="{y(score):.1f}" r="4.5"/>'
            f'<text x="{x(dollars) + 7:.1f}" y="{y(score) + 4:.1f}">{number}</text>'
        )
    label = "score by dollars a run, logarithmic; points are numbered as in the list"
    return _svg(height, label, "".join(parts), width, kind="chart")


def share_plot(low: float, estimate: float, high: float) -> Markup:
    """A share and its interval on an axis from 0 to 1, with marks at both ends and in the middle."""

    def x(value: float) -> float:
        return MARGIN + max(0.0, min(1.0, value)) * (WIDTH - 2 * MARGIN)

    middle = ROW / 2
    marks = "".join(f"M{x(place):.1f} 2V{ROW - 2:.0f}" for place in (0.0, 0.5, 1.0))
    return _svg(
        ROW,
        f"{estimate:.3f}, 95 % from {low:.3f} to {high:.3f}",
        f'<path class="axis" d="{marks}M{x(0):.1f} {middle}H{x(1):.1f}"/>'
        f'<g class="base"><path class="interval" d="M{x(low):.1f} {middle}H{x(high):.1f}"/>'
        f'<circle cx="{x(estimate):.1f}" cy="{middle}" r="3.5"/></g>',
    )


def samples_plot(samples: Mapping[Arm, Sequence[float]], unit: str) -> Markup:
    """A row for each arm: a dot for each sample, a bar over the middle half of them, a stroke at the median."""
    values = [value for arm in samples.values() for value in arm]
    least, most = min(values), max(values)
    is_logarithmic = least > 0 and most / least > WIDEST_LINEAR

    def scaled(value: float) -> float:
        return math.log(value) if is_logarithmic else value

    start, length = scaled(least), scaled(most) - scaled(least) or 1.0

    def x(value: float) -> float:
        return MARGIN + (scaled(value) - start) / length * (WIDTH - 2 * MARGIN)

    parts, told = [], []
    for number, (arm, taken) in enumerate(samples.items()):
        y = (number + 0.5) * ROW
        low, middle, high = _quartiles(taken)
        dots = "".join(f"M{x(value):.1f} {y:.1f}h0" for value in taken)
        parts.append(
            f'<g class="{arm}"><path class="half" d="M{x(low):.1f} {y:.1f}H{x(high):.1f}"/>'
            f'<path class="dots" d="{dots}"/><path class="median" d="M{x(middle):.1f} {y - 6:.1f}v12"/></g>'
        )
        told.append(f"{arm}: median {quantity_text(middle, unit)} of {len(taken)}")
    axis = ", logarithmic axis" if is_logarithmic else ""
    return _svg(ROW * len(samples), "; ".join(told) + axis, "".join(parts))


def bars(values: Sequence[float]) -> list[float]:
    """Heights from 0 to 100 that are in proportion to *values*."""
    most = max(values, default=0.0)
    return [100 * value / most if most else 0.0 for value in values]


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _svg(height: float, label: str, content: str, width: float = WIDTH, *, kind: str = "plot") -> Markup:
    from markupsafe import Markup, escape

    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return Markup(  # noqa: S704 - all of *content* is numbers and names of classes, written above
        f'<svg class="{kind}" {size} role="img"><title>{escape(label)}</title>{content}</svg>'
    )
