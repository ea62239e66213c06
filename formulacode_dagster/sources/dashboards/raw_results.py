"""A folder of raw results collated, in the best order that is known, and published as a site."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from formulacode_dagster.sources.git.command import git
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.log import from_epoch, read_heads

from .collate import History, collate, history_of
from .publish import publish
from .results import RawResults, read_results
from .sites import Dashboard
from .tables import SiteTables

COMMIT_URL = "https://github.com/{repository}/commit/"


class CommitNumbering(StrEnum):
    """Source of the commit numbers."""

    MIRROR = "mirror"
    PUBLISHED = "published"
    """The site that was published of the same repository."""
    DATES = "dates"
    """The results themselves."""


@dataclass(frozen=True)
class Collated:
    """Raw results as the tables of a site, and the source of their commit numbers."""

    site: SiteTables
    order: CommitNumbering


def collate_folder(
    dashboard: Dashboard, folder: Path, *, mirror: Mirror | None, published: SiteTables | None
) -> Collated:
    """The raw results of *dashboard*, and the site that they make in *folder*.

    The order is that of *published* if it has every commit, so that revisions mean the same in both; otherwise that of
    *mirror*, otherwise that of the dates. Raises DashboardError if there are no results, GitError, OutsideSystemError
    if the disk is full.
    """
    raw = read_results(Path(dashboard.results))
    if published is not None and _knows_all(published, raw):
        history, order = history_of(published), CommitNumbering.PUBLISHED
    elif mirror is not None:
        history, order = history_of_mirror(mirror), CommitNumbering.MIRROR
    else:
        history, order = None, CommitNumbering.DATES
    url = COMMIT_URL.format(repository=dashboard.repository) if dashboard.repository else ""
    site = collate(raw, history, dashboard.name, url)
    publish(site, folder, raw.descriptions, raw.machines)
    return Collated(site, order)


def _knows_all(published: SiteTables, raw: RawResults) -> bool:
    return {file.commit for file in raw.files} <= set(published.revisions["hash"])


def history_of_mirror(mirror: Mirror) -> History:
    """Numbers, dates and tags of the commits of branches and tags; as in asv, children come after their parents.

    Raises GitError.
    """
    arguments = ("--date-order", "--reverse", "--branches", "--tags", "--format=%H %ct", "HEAD")
    lines = [line.split() for line in git(mirror.path, "log", *arguments).decode().splitlines()]
    tags: dict[str, list[str]] = {}
    listed = git(mirror.path, "for-each-ref", "refs/tags", "--format=%(refname:short)%00%(objectname)%00%(*objectname)")
    for line in listed.decode(errors="replace").splitlines():
        name, target, peeled = line.split("\0")
        tags.setdefault(peeled or target, []).append(name)
    return History(
        {commit: number for number, (commit, _) in enumerate(lines)},
        {commit: from_epoch(int(seconds)) for commit, seconds in lines},
        tags,
        read_heads(mirror.path).default_branch,
    )
