"""Verdicts on the results of intake. Pure: rows in, verdict out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.intake import SearchGap
from formulacode_dagster.models.items import ItemState, LedgerEntry
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount, PullRequest
from formulacode_dagster.models.repository import Repository, RepositoryState

MOST_MISSING = 0.01
"""Share of a code search's count that may be missing from its results."""
_SHA = re.compile(r"[0-9a-f]{40}")


def not_empty(rows: Sequence[Repository], tracked: Collection[str]) -> CheckFinding:
    """Pass if at least one repository is *tracked*, by name."""
    count = sum(row.full_name in tracked for row in rows)
    return CheckFinding(
        passed=count > 0,
        summary=f"{count} of {len(rows)} repositories are tracked",
        figures={"repositories": len(rows), "tracked": count},
    )


def every_repository_resolves(rows: Sequence[Repository]) -> CheckFinding:
    """No tracked repository vanished, and no two rows are the same one."""
    vanished = [row.full_name for row in rows if row.state is RepositoryState.VANISHED]
    ids = Counter(row.id for row in rows if row.state is not RepositoryState.VANISHED)
    doubled = [row.full_name for row in rows if ids[row.id] > 1]
    summary = f"{len(vanished)} vanished, {len(doubled)} stored twice, of {len(rows)}"
    figures = {"vanished": len(vanished), "doubled": len(doubled)}
    return CheckFinding.by_offenders(summary, vanished + doubled, figures)


def searches_complete(gaps: Sequence[SearchGap]) -> CheckFinding:
    """Pass if every code search returned its count, up to `MOST_MISSING`; GitHub documents its counts as approximate.

    A search over which GitHub timed out fails: its count is incomplete.
    """
    short = [gap for gap in gaps if gap.ran_out or gap.counted - gap.found > MOST_MISSING * gap.counted]
    missing = sum(max(0, gap.counted - gap.found) for gap in gaps)
    offenders = [
        f"{gap.query}: {gap.found} of {gap.counted} files{', GitHub ran out of time' if gap.ran_out else ''}"
        for gap in short
    ]
    summary = f"{len(gaps)} searches stayed short, of {missing} files in all" if gaps else "no search stayed short"
    return CheckFinding.by_offenders(summary, offenders, {"searches": len(gaps), "missing": missing})


def counts_match(
    month: str,
    tracked: Sequence[Repository],
    counts: Sequence[IntakeCount],
    rows: Mapping[int, int],
    windows: Sequence[LedgerEntry],
) -> CheckFinding:
    """Pass if as many pull requests are stored as GitHub reports, for every tracked repository.

    *rows* are the numbers of stored pull requests by repository id; *windows* the ledger's entries of repositories. A
    window that failed, was rejected or was not asked for has its own state; the failure budget limits failures.
    """
    names = {row.id: row.full_name for row in tracked}
    judged = [row for row in counts if row.repository_id in names]
    times = Counter(row.repository_id for row in judged)
    entries = {entry.item: entry for entry in windows}
    failed = sum(entry.state is ItemState.FAILED for entry in windows)
    silent = [
        f"{name}: neither counted nor failed"
        for id_, name in names.items()
        if id_ not in times and (name not in entries or entries[name].state is ItemState.DONE)
    ]
    wrong = [
        f"{row.repository}: {row.stored} of {row.reported}, {rows.get(row.repository_id, 0)} in the table"
        for row in judged
        if not row.reported == row.stored == rows.get(row.repository_id, 0)
    ]
    strangers = [f"{row.repository}: counted for {row.month}" for row in judged if row.month != month]
    doubled = [f"{names[id_]}: counted {count} times" for id_, count in times.items() if count > 1]
    offenders = silent + wrong + strangers + doubled
    stored, reported = sum(row.stored for row in judged), sum(row.reported for row in judged)
    missing = failed + len(silent)
    summary = f"{stored} of the {reported} pull requests that GitHub reports, in {len(judged)} repositories"
    if missing:
        summary = f"{summary}; {missing} repositories could not be taken in"
    figures = {"reported": reported, "stored": stored, "repositories": len(judged), "missing": missing}
    return CheckFinding.by_offenders(summary, offenders, figures)


def search_shows_all(counts: Sequence[IntakeCount]) -> CheckFinding:
    """Pass if search showed every merge that the repositories' own lists have; the others were taken in by number.

    Of months long past the lists are known only in part: where search lacks some, it may lack others.
    """
    offenders = [item_key(row.repository, number) for row in counts for number in row.unsearched]
    summary = f"search lacks {len(offenders)} of {sum(row.stored for row in counts)} merges"
    return CheckFinding.by_offenders(summary, offenders, {"unsearched": len(offenders)})


def mirror_knows_no_more(unseen: Sequence[str], unread: Mapping[str, str], shown: int) -> CheckFinding:
    """No merge is *unseen*: on a default branch and not in GitHub's answer; and every mirror could be read.

    *unread* are those that could not, with the reason; *shown* is how many merges the others show.
    """
    summary = f"{len(unseen)} of {shown} merges that the mirrors show were not found by GitHub's search"
    if unread:
        summary += f"; {len(unread)} mirrors could not be asked"
    offenders = [*unseen, *(f"{name}: {why}" for name, why in unread.items())]
    return CheckFinding.by_offenders(summary, offenders, {"shown": shown, "unseen": len(unseen), "unread": len(unread)})


def window_and_shas_valid(month: str, prs: Iterable[PullRequest]) -> CheckFinding:
    """Merged within the month, hashes well-formed, facts and change of the same pull request, each stored once.

    *prs* are gone through once, and none is held on to.
    """
    window = Month.parse(month)
    times: Counter[tuple[int, int]] = Counter()
    offenders: list[str] = []
    for row in prs:
        times[row.key] += 1
        offenders += [f"{row.item}: {fault}" for fault in _faults(row, window, times[row.key])]
    figures = {"pull_requests": times.total(), "faults": len(offenders)}
    summary = f"{len(offenders)} faults in {times.total()} pull requests"
    return CheckFinding.by_offenders(summary, offenders, figures)


def _faults(row: PullRequest, window: Month, times: int) -> list[str]:
    facts, change = row.facts, row.change
    faults = []
    if facts.month != window.key or change.month != window.key:
        faults.append(f"stored for {facts.month}")
    if not window.holds(facts.merged_at):
        faults.append(f"merged at {facts.merged_at.isoformat()}")
    if (facts.repository_id, facts.number) != (change.repository_id, change.number):
        faults.append(f"holds the change of #{change.number}")
    shas = {
        # GitHub always has it; a source without an API may not, and leaves it empty
        **({"head_sha": facts.head_sha} if facts.head_sha else {}),
        "merge_commit_sha": facts.merge_commit_sha,
        "base_sha": change.base_sha,
        "merge_tree_sha": change.merge_tree_sha,
    }
    faults += [f"{name} is {sha!r}" for name, sha in shas.items() if not _SHA.fullmatch(sha)]
    if change.base_sha == facts.merge_commit_sha:
        faults.append("base and merge commit are the same")
    if times > 1:
        faults.append(f"stored {times} times")
    return faults
