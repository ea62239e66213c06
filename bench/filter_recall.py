"""Pass rate of the symbolic filter: for labelled commits, and for all merges of six repositories in six months.

No model is used. If the maintainers' prefix marks a change as performance, the filter is also run without it: the
prefix would reveal it, and most repositories have none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.selection.classification.symbolic import screen
from formulacode_dagster.sources.git.changes import change_of, prepare
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.offline.identity import known_by_name
from formulacode_dagster.sources.offline.mirrors import MirrorsSource

from .labelled import Example, Label, Stratum, stratum_of, without_prefixes

LEAST_RECALL = 0.99
MOST_PASSED = 0.60
MONTHS = tuple(f"2026-{month:02}" for month in range(1, 7))
REPOSITORIES = (
    "geopandas/geopandas",
    "narwhals-dev/narwhals",
    "networkx/networkx",
    "numpy/numpy",
    "scikit-hep/awkward",
    "zarr-developers/zarr-python",
)
"""Repositories of which all merges of the months are screened."""


@dataclass(frozen=True)
class Screened:
    """The filter's result for one change: nothing, or the reason for rejection."""

    name: str
    rejection: str


@dataclass(frozen=True)
class Merged:
    """A pull request of the months as merged, and without its prefix if that marks performance."""

    repository: str
    as_merged: Screened
    unmarked: Screened | None


def screen_labelled(examples: Iterable[Example], label: Label) -> list[Screened]:
    """The filter over the labelled commits that are *label*, without their prefixes."""
    return [
        Screened(f"{example.entry.repository}@{example.entry.sha[:10]}", rejection_of(example.pr))
        for example in examples
        if example.entry.label is label
    ]


def screen_months(
    folder: Path, repositories: Iterable[str], mirror_of: Callable[[str], Mirror], months: Sequence[str] = MONTHS
) -> Iterator[Merged]:
    """The filter over all that *repositories*, whose mirrors are in *folder*, merged in *months*.

    Pull requests that intake rejects or fails to read are left out: the filter never sees them.
    """
    for repository in repositories:
        with mirror_of(repository) as mirror:
            source = MirrorsSource(folder)
            for month in map(Month.parse, months):
                merged = asyncio.run(source.window(known_by_name(month, repository), month)).pull_requests
                prepare(mirror, merged)
                for facts in merged:
                    try:
                        change, _ = change_of(mirror, facts)
                    except (ItemFailure, Rejection):
                        continue
                    yield _screened(PullRequest(facts=facts, change=change))


def rejection_of(pr: PullRequest) -> str:
    """The reason for which *pr* does not pass; empty when it does."""
    try:
        screen(pr)
    except Rejection as rejection:
        return f"{rejection.reason}: {rejection.detail}"
    return ""


def share(passed: int, of: int) -> str:
    """A share with its 95 % interval, as text."""
    if not of:
        return "none"
    low, high = clopper_pearson(passed, of)
    return f"{passed} of {of}, {passed / of:.1%} ({low:.1%} to {high:.1%})"


def report(examples: Sequence[Example], merged: Sequence[Merged]) -> dict[str, object]:
    """Print the pass rates, and name each known positive that is rejected; return the figures."""
    positives, others = (screen_labelled(examples, label) for label in (Label.PERFORMANCE, Label.OTHER))
    marked = [change.unmarked for change in merged if change.unmarked is not None]
    as_merged = [change.as_merged for change in merged]
    shares = {
        "labelled, performance": positives,
        "labelled, other": others,
        "months, marked as performance": marked,
        "months, everything merged": as_merged,
    }
    print("symbolic filter: passed on")
    for name, screened in shares.items():
        print(f"  {name:32} {share(_passed(screened), len(screened))}")
    for repository in sorted({change.repository for change in merged}):
        own = [change.as_merged for change in merged if change.repository == repository]
        print(f"    {repository:30} {share(_passed(own), len(own))}")
    for lost in (*positives, *marked):
        if lost.rejection:
            print(f"  turned away: {lost.name}: {lost.rejection}")
    counts = {name: [_passed(screened), len(screened)] for name, screened in shares.items()}
    recall = _passed(positives) / len(positives) if positives else 0.0
    passed = _passed(as_merged) / len(as_merged) if as_merged else None
    reached = recall >= LEAST_RECALL and (passed is None or passed <= MOST_PASSED)
    return {"recall": round(recall, 4), "passed_on": passed and round(passed, 4), "counts": counts, "reached": reached}


def _screened(pr: PullRequest) -> Merged:
    facts = pr.facts
    as_merged = Screened(facts.item, rejection_of(pr))
    if stratum_of(facts.title) is not Stratum.PERF_TITLED:
        return Merged(facts.repository, as_merged, None)
    bare = facts.model_copy(update={"title": without_prefixes(facts.title), "body": without_prefixes(facts.body)})
    return Merged(
        facts.repository, as_merged, Screened(facts.item, rejection_of(pr.model_copy(update={"facts": bare})))
    )


def _passed(screened: Iterable[Screened]) -> int:
    return sum(not change.rejection for change in screened)
