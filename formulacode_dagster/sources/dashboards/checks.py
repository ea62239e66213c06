"""Verdicts on a dashboard: pure functions of its tables."""

from __future__ import annotations

from formulacode_dagster.models.check import CheckFinding

from .faults import FaultKind
from .tables import SiteTables

ODD = frozenset(
    {FaultKind.DUPLICATE_REVISION, FaultKind.UNORDERED, FaultKind.UNKNOWN_REVISION, FaultKind.BACKWARDS_IN_TIME}
)
"""Faults of files that were read anyway; the other kinds, except `absent`, mark files that were not."""


NOT_HERE = CheckFinding(passed=True, summary="this dashboard has none")


def complete(site: SiteTables | None) -> CheckFinding:
    """Every graph and summary of the index was read, or the site does not have it; every benchmark has a graph."""
    if site is None:
        return NOT_HERE
    lost = [f"{path}: {kind}" for path, kind, _ in site.faults.rows() if kind not in ODD and kind != FaultKind.ABSENT]
    silent = site.silent_benchmarks()
    absent = site.faults.filter(kind=FaultKind.ABSENT).height
    return CheckFinding.by_offenders(
        f"{site.graphs_read:,} of {site.graphs_expected:,} graphs and {site.summaries_read:,} of "
        f"{site.summaries_expected:,} summaries of the index; {absent:,} the site does not have, "
        f"{len(lost):,} are lost, {len(silent):,} benchmarks have no graph",
        [*lost, *(f"{name}: no graph" for name in silent)],
        {
            "graphs_expected": site.graphs_expected,
            "graphs_read": site.graphs_read,
            "absent": absent,
            "lost": len(lost),
            "silent_benchmarks": len(silent),
        },
        _by_kind(site),
    )


def in_order(site: SiteTables | None) -> CheckFinding:
    """Revisions are known, distinct and ascending in every graph, and dates follow them."""
    if site is None:
        return NOT_HERE
    odd = [f"{path}: {kind} {detail}".rstrip() for path, kind, detail in site.faults.rows() if kind in ODD]
    return CheckFinding.by_offenders(
        f"{len(odd):,} files with revisions that are unknown, twice, out of order or dated backwards",
        odd,
        {"odd": len(odd)},
    )


def every_file_read(site: SiteTables | None) -> CheckFinding:
    """Every file of raw results was read, and belongs to a commit of the history and to benchmarks as they are now."""
    if site is None:
        return NOT_HERE
    return CheckFinding.by_offenders(
        f"{site.faults.height:,} files of raw results are not, or not all, among {site.points.height:,} values",
        [f"{path}: {kind} {detail}".rstrip() for path, kind, detail in site.faults.rows()],
        {"files": site.faults.height, "values": site.points.height},
        _by_kind(site),
    )


def _by_kind(site: SiteTables) -> dict[str, dict[str, int]]:
    counted = site.faults.group_by("kind", maintain_order=True).len()
    return {kind: {"files": count} for kind, count in counted.iter_rows()}
