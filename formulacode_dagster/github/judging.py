"""Whether what searches showed is all there is: leaf by leaf, and repository by repository. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .counting import Counted
from .nodes import PullRequestNode
from .packing import Leaf
from .paging import Found


@dataclass(frozen=True)
class Judged:
    """What was found of one repository; `fault` says why that is not all, and is empty when it is."""

    counted: Counted
    nodes: tuple[PullRequestNode, ...]
    fault: str = ""


def judge(counted: Sequence[Counted], leaves: Sequence[Leaf], found: Sequence[Found]) -> tuple[Judged, ...]:
    """Compare what *leaves* showed with what each of *counted*, the repositories behind them, has in its window.

    A leaf whose size is not the sum of its repositories' counts, or that shows what was not asked for, says nothing
    certain about any of them. Otherwise each stands for itself: as many pull requests as were counted, none twice.
    """
    doubts = [doubt for leaf, shown in zip(leaves, found, strict=True) if (doubt := _doubt(leaf, shown))]
    words = "; ".join(shown.words for shown in found if shown.words)
    nodes: dict[int, list[PullRequestNode]] = {one.repository.id: [] for one in counted}
    for shown in found:
        for node in shown.nodes:
            nodes.get(node.repository.database_id or 0, []).append(node)
    judged = []
    for one in counted:
        mine = nodes[one.repository.id]
        fault = _shortage(one, mine)
        reasons = (*doubts, *((f"{fault}; {words}" if words else fault,) if fault else ()))
        judged.append(Judged(one, tuple(mine), "; ".join(reasons)))
    return tuple(judged)


def _doubt(leaf: Leaf, found: Found) -> str:
    ids = {one.repository.id for one in leaf.counted}
    window = leaf.window
    for node in found.nodes:
        where = node.repository
        if where.database_id not in ids:
            return f"search returned #{node.number} of {where.name_with_owner}, which was not asked for"
        if not window.start <= node.merged_at < window.end:
            merged = node.merged_at.isoformat()
            return f"search returned {where.name_with_owner}#{node.number}, merged at {merged}"
    other = next((count for count in found.counts if count != leaf.count), None)
    if other is not None:
        return f"{leaf.count} were counted in {window.qualifier}, {other} are there now"
    return ""


def _shortage(counted: Counted, nodes: Sequence[PullRequestNode]) -> str:
    numbers = {node.number for node in nodes}
    if len(numbers) == len(nodes) == counted.count:
        return ""
    twice = f", {len(nodes) - len(numbers)} of them twice" if len(nodes) > len(numbers) else ""
    return f"{len(numbers)} of {counted.count} in {counted.window.qualifier}{twice}"
