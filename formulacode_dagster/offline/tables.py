"""Rows as models: repositories with their names, pull requests of a month, counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState

from .identity import derived_id
from .problems import Problems
from .rows import Row, read_rows
from .schema import COUNTS, PULL_REQUESTS, REPOSITORIES, FileSchema
from .spool import Spool
from .values import CellError, read_cell


@dataclass(frozen=True)
class Repositories:
    """The repositories that files tell of in a month, by every name they have or had, in lower case."""

    by_name: dict[str, Repository] = field(default_factory=dict)

    def all(self) -> tuple[Repository, ...]:
        """Each of them once, by name."""
        found = {one.full_name.lower(): one for one in self.by_name.values()}
        return tuple(found[name] for name in sorted(found))

    def get(self, name: str) -> Repository | None:
        """The repository with this name."""
        return self.by_name.get(name.lower())


def read_repositories(path: Path, month: Month, problems: Problems) -> Repositories:
    """The repositories of *path* as of *month*; two rows with one name or id go to *problems*."""
    found: dict[str, Repository] = {}
    places: dict[object, str] = {}
    for row in read_rows(path, REPOSITORIES, problems):
        values = _values(path, row, REPOSITORIES, problems)
        if values is None or values.pop("month", month.key) != month.key:
            continue
        repository = _repository(month, values)
        names = [repository.full_name.lower(), *(alias.lower() for alias in repository.aliases)]
        for key in (*dict.fromkeys(names), repository.id):
            if places.setdefault(key, row.where) != row.where:
                what = "name" if isinstance(key, str) else "id"
                problems.add(path, row.where, "full_name", f"{key!r} is the {what} of {places[key]} too")
                break
        else:
            found.update(dict.fromkeys(names, repository))
    return Repositories(found)


def named_repositories(path: Path, month: Month, problems: Problems) -> Repositories:
    """The repositories that the pull requests of *path*, of any month, belong to: all that is known without a list."""
    column = PULL_REQUESTS.by_name["repository"]
    found: dict[str, Repository] = {}
    for row in read_rows(path, PULL_REQUESTS, problems):
        try:
            name = read_cell(column, row.cells.get(column.name))
        except CellError as error:
            problems.add(path, row.where, column.name, str(error))
            continue
        if name.lower() not in found:
            found[name.lower()] = _repository(month, {"full_name": name})
    return Repositories(found)


def spool_pull_requests(path: Path, month: Month, repositories: Repositories, problems: Problems, spool: Spool) -> None:
    """Put the pull requests of *path* that were merged in *month* into *spool*."""
    merged_at = PULL_REQUESTS.by_name["merged_at"]
    for row in read_rows(path, PULL_REQUESTS, problems, month):
        try:
            moment = read_cell(merged_at, row.cells.get("merged_at"))
        except CellError as error:
            problems.add(path, row.where, "merged_at", str(error))
            continue
        if not month.holds(moment):
            continue
        values = _values(path, row, PULL_REQUESTS, problems)
        if values is None:
            continue
        repository = repositories.get(values.pop("repository"))
        if repository is None:
            name = row.cells["repository"]
            problems.add(path, row.where, "repository", f"{name} is not among the repositories of {month}")
            continue
        facts = _pull_request(month, repository, values)
        if before := spool.add(repository.full_name.lower(), facts, row.where):
            problems.add(path, row.where, "number", f"{facts.item} stands at {before} too")


def read_counts(path: Path, month: Month, repositories: Repositories, problems: Problems) -> dict[str, int]:
    """How many pull requests *path* says were merged in *month*, by name of the repository in lower case."""
    found: dict[str, int] = {}
    for row in read_rows(path, COUNTS, problems):
        values = _values(path, row, COUNTS, problems)
        if values is None or values["month"] != month.key:
            continue
        repository = repositories.get(values["repository"])
        if repository is None:
            name = values["repository"]
            problems.add(path, row.where, "repository", f"{name} is not among the repositories of {month}")
        elif found.setdefault(repository.full_name.lower(), values["reported"]) != values["reported"]:
            problems.add(path, row.where, "reported", f"{repository.full_name} is counted twice, differently")
    return found


def row_values(schema: FileSchema, cells: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Name, value and fault of every column that a row fills; the fault is empty where there is none."""
    for column in schema.columns:
        try:
            value = read_cell(column, cells.get(column.name))
        except CellError as error:
            yield column.name, None, str(error)
            continue
        if value is not None:
            yield column.name, value, ""


def _values(path: Path, row: Row, schema: FileSchema, problems: Problems) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    faults = 0
    for name, value, fault in row_values(schema, row.cells):
        values[name] = value
        if fault:
            faults += 1
            problems.add(path, row.where, name, fault)
    return None if faults else values


def _repository(month: Month, values: dict[str, Any]) -> Repository:
    given = {"state": RepositoryState.ACTIVE, "stars": UNKNOWN_STARS, "node_id": "", "config_path": "", **values}
    given.setdefault("language", UNKNOWN_LANGUAGE)
    given.setdefault("id", derived_id(values["full_name"]))
    return Repository(month=month.key, **given)


def _pull_request(month: Month, repository: Repository, values: dict[str, Any]) -> MergedPullRequest:
    given = {"head_sha": "", "merge_commit_sha": "", "created_at": values["merged_at"], **values}
    given["base_ref"] = values.get("base_ref") or repository.default_branch
    return MergedPullRequest(month=month.key, repository_id=repository.id, repository=repository.full_name, **given)
