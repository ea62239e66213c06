"""Stacks as flame graphs: a bar per function, as wide as its share of a call's time, with its callees above it.

https://www.brendangregg.com/flamegraphs.html; SVG made of numbers and escaped names, without scripts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from formulacode_dagster.models.measurement import Arm, Frame, Stacks, TaskProfile

WIDTH, ROW, CHARACTER = 960.0, 16.0, 6.2
LEAST_WIDTH = 0.6
"""Narrower bars are not drawn: they would be invisible."""
ARMS = (Arm.BASE, Arm.ORACLE)


@dataclass
class _Node:
    frame: Frame | None = None
    seconds: float = 0.0
    children: dict[Frame, _Node] = field(default_factory=dict)


def flame_graph(stacks: Stacks, *, longest_call: float) -> str:
    """*stacks* as SVG, to the scale on which a call of *longest_call* seconds is as wide as the picture."""
    root = _tree(stacks)
    scale = WIDTH / longest_call if longest_call > 0 else 0.0
    bars = list(_bars(root, 0.0, 0, scale))
    rows = 1 + max((depth for _, _, depth, _ in bars), default=0)
    height = ROW * rows
    drawn = "".join(_bar(frame, left, height - ROW * (depth + 1), width, scale) for frame, left, depth, width in bars)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'width="100%" font-family="monospace" font-size="10">{drawn}</svg>'
    )


def flames_of(by_arm: Mapping[Arm, Stacks]) -> dict[Arm, str]:
    """Base and oracle of a benchmark, both to the scale of the slower: the gain is empty."""
    longest = max((stacks.seconds_per_call for stacks in by_arm.values()), default=0.0)
    return {arm: flame_graph(by_arm[arm], longest_call=longest) for arm in ARMS if arm in by_arm}


def flame_graphs(profile: TaskProfile) -> dict[str, dict[Arm, str]]:
    """Base and oracle of each benchmark of *profile*."""
    return {benchmark: flames_of(by_arm) for benchmark, by_arm in sorted(profile.stacks.items())}


def flames_page(item: str, profile: TaskProfile) -> str:
    """Return one self-contained HTML file with all flame graphs of *item*."""
    sections = [
        f"<h2>{escape(benchmark)}</h2>"
        + "".join(
            f"<h3>{arm.value}: {profile.stacks[benchmark][arm].seconds_per_call:.4g} s a call</h3>{svg}"
            for arm, svg in graphs.items()
        )
        for benchmark, graphs in flame_graphs(profile).items()
    ]
    title = f"Where the time of {escape(item)} goes"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><body><h1>{title}</h1>'
        + "\n".join(sections)
        + "</body></html>\n"
    )


def hot_frames(stacks: Mapping[Arm, Stacks], most: int) -> list[tuple[Frame, dict[Arm, float]]]:
    """The *most* functions with the most own seconds a call on either arm, with these."""
    own: dict[Frame, dict[Arm, float]] = {}
    for arm, told in stacks.items():
        for stack in told.stacks:
            by_arm = own.setdefault(told.frames[stack.frames[-1]], {})
            by_arm[arm] = by_arm.get(arm, 0.0) + stack.seconds / max(1, told.calls)
    return sorted(own.items(), key=lambda entry: -max(entry[1].values()))[:most]


def _tree(stacks: Stacks) -> _Node:
    root = _Node()
    for stack in stacks.stacks:
        each = stack.seconds / max(1, stacks.calls)
        node = root
        node.seconds += each
        for number in stack.frames:
            frame = stacks.frames[number]
            node = node.children.setdefault(frame, _Node(frame))
            node.seconds += each
    return root


def _bars(node: _Node, left: float, depth: int, scale: float) -> Iterator[tuple[Frame, float, int, float]]:
    """Bars from the bottom up: frame, left edge, row and width."""
    for child in sorted(node.children.values(), key=lambda child: -child.seconds):
        width = child.seconds * scale
        if width >= LEAST_WIDTH and child.frame is not None:
            yield child.frame, left, depth, width
            yield from _bars(child, left, depth + 1, scale)
        left += width


def _bar(frame: Frame, left: float, top: float, width: float, scale: float) -> str:
    # of one file one colour, the same in every picture
    hue = zlib.crc32(frame.file.encode()) % 360
    shown = frame.function[: int(width / CHARACTER)]
    text = f'<text x="{left + 2:.1f}" y="{top + ROW - 4:.1f}">{escape(shown)}</text>' if len(shown) > 2 else ""
    where = escape(f"{frame.function} ({frame.file}:{frame.line}), {width / scale:.4g} s a call")
    return (
        f'<g><title>{where}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{ROW - 1:.0f}" '
        f'fill="hsl({hue} 60% 75%)"/>{text}</g>'
    )
