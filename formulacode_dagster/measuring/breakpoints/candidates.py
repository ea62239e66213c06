"""Commits at which benchmarks got faster, as candidates of the months in which they landed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import polars as pl
from sqlalchemy import Connection, delete, select

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.identity import stand_in_number
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.models.pull_request import DashboardCandidate
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.artifacts import DASHBOARD_CANDIDATES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import repository_id
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import DASHBOARDS
from formulacode_dagster.sources.git.log import read_commits, read_heads
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from formulacode_dagster.sources.offline.identity import derived_id
from formulacode_dagster.sources.offline.marks import marks

from .choices import Method
from .persistence import load_breakpoints

WIDEST = 1
"""Maximum distance between the two measured commits; among several commits the cause is unknown."""


class CandidateExclusion(StrEnum):
    """Why a step makes no candidate."""

    NOT_FASTER = "not_faster"
    """No more benchmarks got better than worse."""
    WIDE = "wide"
    """Too many commits lie between the two that were measured."""
    NOT_ON_THE_BRANCH = "not_on_the_branch"
    """The repository does not have its commits, or not one after the other."""
    TOO_EARLY = "too_early"
    """It landed before the first month."""


@dataclass(frozen=True)
class Chosen:
    """The candidates of a dashboard, and how many steps made none."""

    candidates: tuple[DashboardCandidate, ...]
    left_out: Counter[CandidateExclusion]


def enter_candidates_of(
    database: Database,
    cache: MirrorCache,
    dashboard: str,
    *,
    source: Source = Source.PUBLISHED,
    method: Method = Method.SEEDED,
    widest: int = WIDEST,
) -> Chosen:
    """Make the commits that the kept breakpoints of *dashboard* name all its candidates, month by month.

    They enter a month when its `pull_requests` is materialized. Raises ConfigurationError for a dashboard that was
    never read, or whose repository is unknown; otherwise as `MirrorCache.ensure`.
    """
    with database.transaction() as connection:
        repository = repository_of(connection, dashboard, source)
        commits = load_breakpoints(connection, dashboard, source, method).commits
        number = repository_id(connection, repository)
    ends = [sha for sha in commits.select("before_hash", "after_hash").to_numpy().ravel() if sha]
    with cache.ensure(repository, commits=ends) as mirror:
        chosen = choose_candidates(
            commits,
            mirror,
            repository_id=derived_id(repository) if number is None else number,
            found_by=(dashboard, source, method),
            widest=widest,
        )
    with database.transaction() as connection:
        replace_candidates(connection, dashboard, chosen.candidates)
    return chosen


def choose_candidates(
    commits: pl.DataFrame,
    mirror: Mirror,
    *,
    repository_id: int,
    found_by: tuple[str, Source, Method],
    widest: int = WIDEST,
) -> Chosen:
    """Iterate over the commits of those ranges of *commits* (NAMED_COMMITS) that got faster and span at most *widest*.

    A commit that merged a pull request has its number and title; any other has a derived number.
    """
    left_out: Counter[CandidateExclusion] = Counter()
    candidates: dict[str, DashboardCandidate] = {}
    heads = read_heads(mirror.path)
    for step in commits.iter_rows(named=True):
        if step["improved"] <= step["regressed"]:
            left_out[CandidateExclusion.NOT_FASTER] += 1
            continue
        try:
            between = mirror.between(step["before_hash"] or "", step["after_hash"] or "")
        except ItemFailure as failure:
            if failure.kind is not FailureKind.COMMIT_MISSING:
                raise
            between = ()
        if not between or len(between) > widest:
            left_out[CandidateExclusion.WIDE if between else CandidateExclusion.NOT_ON_THE_BRANCH] += 1
            continue
        line = read_commits(mirror.path, "--first-parent", revisions=[step["after_hash"], f"^{step['before_hash']}"])
        merged = {mark.commit.sha: mark for mark in marks(line, heads).values()}
        for commit in line:
            at = datetime.fromtimestamp(commit.committed, UTC)
            if Month.of(at).key < FIRST_MONTH:
                left_out[CandidateExclusion.TOO_EARLY] += 1
                continue
            mark = merged.get(commit.sha)
            title, body = (mark.title, mark.body) if mark and mark.title else (commit.subject, commit.body)
            candidates[commit.sha] = DashboardCandidate(
                month=Month.of(at).key,
                repository_id=repository_id,
                number=mark.number if mark else stand_in_number(commit.sha),
                repository=mirror.repository,
                sha=commit.sha,
                title=title,
                body=body,
                committed_at=at,
                dashboard=found_by[0],
                series=found_by[1].value,
                method=found_by[2].value,
                before_sha=step["before_hash"],
                commits=len(between),
                improved=step["improved"],
                regressed=step["regressed"],
                median_ratio=step["median_ratio"],
            )
    return Chosen(tuple(candidates.values()), left_out)


def replace_candidates(connection: Connection, dashboard: str, candidates: Sequence[DashboardCandidate]) -> None:
    """Make *candidates* all that *dashboard* has, in every month."""
    table = DASHBOARD_CANDIDATES.table
    for row in DASHBOARD_CANDIDATES.read_all(connection):
        if row.dashboard == dashboard:
            columns = table.c
            same = (columns.month == row.month) & (columns.repository_id == row.repository_id)
            connection.execute(delete(table).where(same, columns.number == row.number))
    DASHBOARD_CANDIDATES.save(connection, candidates)


def repository_of(connection: Connection, dashboard: str, source: Source) -> str:
    """Return the repository of *dashboard*; raises ConfigurationError if it is unknown, or nothing was read."""
    columns = DASHBOARDS.c
    of = (columns.dashboard == dashboard) & (columns.source == source.value)
    repository = connection.execute(select(columns.repository).where(of)).scalar_one_or_none()
    if not repository:
        why = "its repository is not known" if repository == "" else f"nothing {source} was read of it"
        raise ConfigurationError(
            f"{dashboard} has no commits that could be looked at",
            why=why,
            remedy="Name the repository where the dashboard is added, and materialize dashboards and breakpoints",
        )
    return str(repository)
