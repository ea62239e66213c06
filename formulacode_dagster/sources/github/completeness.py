"""Checks that searches have shown everything a repository merged. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .counting import Counted
from .paging import SearchResult


def fault_of(counted: Counted, results: Sequence[SearchResult]) -> str:
    """Why *results*, of one repository's window, are not all that was *counted* in it; empty when they are.

    Every search shows as many as it counts, then and now, each once and none unrequested; and together they show the
    count of the whole window.
    """
    faults = [fault for result in results for fault in _faults(result)]
    numbers = {node.number for result in results for node in result.nodes}
    if not faults and len(numbers) != counted.count:
        faults = [f"{len(numbers)} of {counted.count} in {counted.window.qualifier}"]
    return "; ".join(faults)


def _faults(result: SearchResult) -> Iterator[str]:
    searched = result.searched
    window, name = searched.window, searched.name
    for node in result.nodes:
        where = node.repository
        if where.database_id != searched.repository.id:
            yield f"search returned #{node.number} of {where.name_with_owner}, which was not asked for"
        elif not window.holds(node.merged_at):
            yield f"search returned {name}#{node.number}, merged at {node.merged_at.isoformat()}"
    other = next((count for count in result.counts if count != searched.count), None)
    if other is not None:
        yield f"{searched.count} were counted in {window.qualifier}, {other} are there now"
    numbers = {node.number for node in result.nodes}
    if not len(numbers) == len(result.nodes) == searched.count:
        double = len(result.nodes) - len(numbers)
        twice = f", {double} of them twice" if double else ""
        yield f"{len(numbers)} of {searched.count} in {window.qualifier}{twice}"
        yield from result.complaints
