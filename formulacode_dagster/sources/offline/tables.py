"""Rows as models: repositories with their names, pull requests of a month, counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.repository import Repository

from .identity import derived_id, known_by_name
from .problems import Problems
from .rows import read_rows
from .schema import (
    COUNTS,
    PULL_REQUESTS,
    REPOSITORIES,
    CountRow,
    FileSchema,
    MergedAt,
    OfflinePullRequest,
    OfflineRow,
    OfRepository,
    RepositoryRow,
)
from .spool import Spool

R = TypeVar("R", bound=OfflineRow)


@dataclass(frozen=True)
class Repositories:
    """The repositories in the files of a month, by every current or former name, in lower case."""

    by_name: dict[str, Repository] = field(default_factory=dict)

    def all(self) -> tuple[Repository, ...]:
        """Each of them once, by name."""
        by_name = {repository.full_name.lower(): repository for repository in self.by_name.values()}
        return tuple(by_name[name] for name in sorted(by_name))

    def get(self, name: str) -> Repository | None:
        """The repository with this name."""
        return self.by_name.get(name.lower())


def read_repositories(path: Path, month: Month, problems: Problems) -> Repositories:
    """The repositories of *path* as of *month*; two rows with one name or id go to *problems*."""
    by_name: dict[str, Repository] = {}
    places: dict[object, str] = {}
    for where, row in _read(path, REPOSITORIES, RepositoryRow, problems):
        if row.month not in ("", month.key):
            continue
        told = row.model_dump() | {"month": month.key, "id": row.id or derived_id(row.full_name)}
        repository = Repository.model_validate(told)
        names = [name.lower() for name in (repository.full_name, *repository.aliases)]
        for key in (*dict.fromkeys(names), repository.id):
            if places.setdefault(key, where) != where:
                what = "name" if isinstance(key, str) else "id"
                problems.add(path, where, "full_name", f"{key!r} is the {what} of {places[key]} too")
                break
        else:
            by_name.update(dict.fromkeys(names, repository))
    return Repositories(by_name)


def named_repositories(path: Path, month: Month, problems: Problems) -> Repositories:
    """The repositories that the pull requests of *path*, of any month, belong to: all that is known without a list."""
    names = (row.repository for _, row in _read(path, PULL_REQUESTS, OfRepository, problems))
    by_name: dict[str, Repository] = {}
    for name in names:
        if name.lower() not in by_name:
            by_name[name.lower()] = known_by_name(month, name)
    return Repositories(by_name)


def spool_pull_requests(path: Path, month: Month, repositories: Repositories, problems: Problems, spool: Spool) -> None:
    """Put the pull requests of *path* that were merged in *month* into *spool*; rows of other months are not judged."""
    for row in read_rows(path, PULL_REQUESTS, problems, month):
        try:
            if not month.holds(MergedAt.model_validate(row.cells).merged_at):
                continue
            told = OfflinePullRequest.model_validate(row.cells)
        except ValidationError as error:
            problems.add_row(path, row.where, error)
            continue
        repository = _repository_named(repositories, told.repository, path, row.where, month, problems)
        if repository is None:
            continue
        changed = {
            "month": month.key,
            "repository": repository.full_name,
            "repository_id": repository.id,
            "created_at": told.created_at or told.merged_at,
            "base_ref": told.base_ref or repository.default_branch,
        }
        facts = MergedPullRequest.model_validate(told.model_dump() | changed)
        if before := spool.add(repository.full_name.lower(), facts, row.where):
            problems.add(path, row.where, "number", f"{facts.item} stands at {before} too")


def read_counts(path: Path, month: Month, repositories: Repositories, problems: Problems) -> dict[str, int]:
    """Return how many pull requests *path* says were merged in *month*, by repository name in lower case."""
    counts: dict[str, int] = {}
    for where, row in _read(path, COUNTS, CountRow, problems):
        if row.month != month.key:
            continue
        repository = _repository_named(repositories, row.repository, path, where, month, problems)
        if repository is not None and counts.setdefault(repository.full_name.lower(), row.reported) != row.reported:
            problems.add(path, where, "reported", f"{repository.full_name} is counted twice, differently")
    return counts


def _read(path: Path, schema: FileSchema, model: type[R], problems: Problems) -> Iterator[tuple[str, R]]:
    """Iterate over the rows of *path* as *model*, with their places; problems of others go to *problems*."""
    for row in read_rows(path, schema, problems):
        try:
            yield row.where, model.model_validate(row.cells)
        except ValidationError as error:
            problems.add_row(path, row.where, error)


def _repository_named(
    repositories: Repositories, name: str, path: Path, where: str, month: Month, problems: Problems
) -> Repository | None:
    repository = repositories.get(name)
    if repository is None:
        problems.add(path, where, "repository", f"{name} is not among the repositories of {month}")
    return repository
