"""Gathers the content of a commit's page: breakpoints and series from Postgres, its mirror, and optional services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.persistence import Breakpoints, load_breakpoints
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, Rejection
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import ChangedFile, MergedPullRequest
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.sources.dashboards.persistence import load_site
from formulacode_dagster.sources.dashboards.tables import SiteTables, write_tables
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.log import read_commits
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from formulacode_dagster.sources.github.links import walk_links
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .codecov import CodecovClient, FileCoverage
from .plots import step_plot
from .report import AffectedSeries, CommitReport, covered

MOST_SERIES = 40
"""Series on one page: the largest steps."""
REPORTS = pl.Schema(
    {
        "commit": pl.String(),
        "pull_request": pl.Int64(),
        "path": pl.String(),
        "tokens": pl.UInt32(),
        "files": pl.UInt32(),
        "lines_hit": pl.UInt32(),
        "lines_known": pl.UInt32(),
    }
)
"""One row per page. `lines_known` are those of changed files in the coverage report, not of the commit."""


@dataclass(frozen=True)
class Steps:
    """Stored data of a dashboard: its series, their steps, and their repository."""

    repository: str
    site: SiteTables
    breakpoints: Breakpoints

    @classmethod
    def load(cls, database: Database, dashboard: str, repository: str, source: Source, method: Method) -> Steps:
        """Return the stored data of *dashboard*; raises ConfigurationError if there is none, or no step was found."""
        with database.transaction() as connection:
            site = load_site(connection, dashboard, source)
            breakpoints = load_breakpoints(connection, dashboard, source, method)
        if not breakpoints.commits.height:
            raise ConfigurationError(
                f"{dashboard} has no steps by {method}", remedy="Materialize its breakpoints, or name another method"
            )
        return cls(repository, site, breakpoints)

    def most_improved(self, limit: int) -> list[dict[str, Any]]:
        """The *limit* commits at which most benchmarks got faster, whose hash is known."""
        commits = self.breakpoints.commits.filter((pl.col("improved") > 0) & pl.col("after_hash").is_not_null())
        return list(
            commits.sort("improved", "after_revision", descending=[True, False]).head(limit).iter_rows(named=True)
        )


async def write_reports(
    steps: Steps,
    cache: MirrorCache,
    folder: Path,
    *,
    limit: int,
    codecov: CodecovClient | None = None,
    github: GitHubTransport | None = None,
) -> pl.DataFrame:
    """Write the pages of the *limit* most improving commits into *folder*; return the rows, as REPORTS.

    Without *codecov* there is no coverage, without *github* no discussion. Raises OutsideSystemError when one of them,
    or the disk, is dead; as `MirrorCache.ensure`.
    """
    chosen = steps.most_improved(limit)
    rows = []
    with cache.ensure(steps.repository, commits=[step["after_hash"] for step in chosen]) as mirror:
        for step in chosen:
            sha, number = step["after_hash"], step["pull_request"]
            coverage = await codecov.files(steps.repository, sha) if codecov is not None else None
            walk, notes = None, []
            if github is not None and number is not None:
                try:
                    walk = await walk_links(github, steps.repository, number)
                except ItemFailure as failure:
                    notes.append(f"its pull request cannot be read: {failure.kind}")
            try:
                page = _report(steps, step, mirror, coverage=coverage, walk=walk, notes=notes, folder=folder)
            except ItemFailure as failure:
                # a commit that its host lacks is reported, and the others are still written
                rows.append((sha, number, f"none: {failure.kind}", 0, 0, 0, 0))
                continue
            path = folder / f"{sha}.md"
            with disk_errors(str(path)):
                write_atomically(path, page.text.encode())
            rows.append((sha, number, path.name, page.tokens, len(page.files), *covered(page.files, coverage)))
    table = pl.DataFrame(rows, schema=REPORTS, orient="row")
    write_tables({"reports": table}, folder)
    return table


def _report(
    steps: Steps,
    step: Mapping[str, Any],
    mirror: Mirror,
    *,
    coverage: Mapping[str, FileCoverage] | None,
    walk: LinkWalk | None,
    notes: list[str],
    folder: Path,
) -> CommitReport:
    sha = step["after_hash"]
    mirror.commit(sha)
    (commit,) = read_commits(mirror.path, "--max-count=1", revisions=[sha])
    return CommitReport(
        repository=steps.repository,
        sha=sha,
        before_sha=step["before_hash"] or "",
        subject=commit.subject,
        body=commit.body,
        author=commit.author,
        committed_at=datetime.fromtimestamp(commit.committed, UTC),
        files=_files(mirror, sha, notes),
        coverage=coverage,
        pull_request=step["pull_request"],
        walk=walk,
        improved=step["improved"],
        regressed=step["regressed"],
        series=tuple(_series(steps, step, folder)),
        commits_between=step["after_revision"] - step["before_revision"],
        notes=tuple(notes),
    )


def _files(mirror: Mirror, sha: str, notes: list[str]) -> tuple[ChangedFile, ...]:
    at = datetime.fromtimestamp(mirror.commit(sha).committed, UTC)
    facts = MergedPullRequest(
        month=Month.of(at).key, repository_id=0, number=0, repository=mirror.repository, title="", created_at=at,
        merged_at=at, base_ref="", head_sha="", merge_commit_sha=sha,
    )  # fmt: skip
    try:
        return change_of(mirror, facts)[0].files
    except (ItemFailure, Rejection) as end:
        notes.append(f"its files are unknown: {end.kind if isinstance(end, ItemFailure) else end.reason}")
        return ()


def _series(steps: Steps, step: Mapping[str, Any], folder: Path) -> Iterator[AffectedSeries]:
    """The steps that *step* explains, the largest first, each with its picture below *folder*."""
    explained = (pl.col("before_revision") <= step["before_revision"]) & (
        pl.col("after_revision") >= step["after_revision"]
    )
    of = steps.site.series.select("series", "machine", "environment", "unit")
    largest = pl.col("ratio").log().abs().fill_null(float("inf"))
    shown = steps.breakpoints.steps.filter(explained).join(of, on="series").sort(largest, descending=True)
    for number, row in enumerate(shown.head(MOST_SERIES).iter_rows(named=True)):
        points = steps.site.points.filter(pl.col("series") == row["series"]).drop_nulls("value").sort("revision")
        picture = step_plot(
            list(points.select("revision", "value").iter_rows()),
            before_revision=row["before_revision"],
            after_revision=row["after_revision"],
            before=row["before"],
            after=row["after"],
        )
        name = f"{step['after_hash']}/{number}.svg"
        with disk_errors(str(folder / name)):
            write_atomically(folder / name, picture.encode())
        parameters = f"({', '.join(row['parameters'])})" if row["parameters"] else ""
        yield AffectedSeries(
            name=f"{row['benchmark']}{parameters}",
            environment=row["environment"],
            unit=row["unit"],
            before=row["before"],
            after=row["after"],
            ratio=row["ratio"],
            interval=(row["ratio_low"], row["ratio_high"]),
            direction=row["direction"],
            plot=name,
        )
