"""Repositories and pull requests from Parquet, CSV or JSONL files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.intake import MergedWindow, OnGap
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.cancellation.loops import in_thread

from .completion import MirrorCompletion
from .identity import with_vanished
from .local_source import LocalSource
from .problems import EnoughProblems, Problems
from .spool import Spool
from .tables import Repositories, named_repositories, read_counts, read_repositories, spool_pull_requests

T = TypeVar("T")


@dataclass(frozen=True)
class Files:
    """The files of a source, as found; one of the first two at least."""

    repositories: Path | None = None
    pull_requests: Path | None = None
    counts: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The existing ones."""
        return tuple(path for path in (self.repositories, self.pull_requests, self.counts) if path is not None)

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths))


@dataclass(frozen=True)
class _Windows:
    """Files of a month's pull requests."""

    repositories: Repositories
    reported: dict[str, int]
    spool: Spool


class FilesSource(LocalSource):
    """An IntakeSource over *files*. Each month is read once, at its first use.

    *completion* provides commit data that the files leave out. Problems of a file raise ConfigurationError, which lists
    up to twenty faults by file, line and column.
    """

    def __init__(self, files: Files, completion: MirrorCompletion) -> None:
        self._files = files
        self._completion = completion
        self._lock = threading.RLock()
        self._repositories: dict[Month, Repositories] = {}
        self._windows: dict[Month, _Windows] = {}

    async def __aexit__(self, *_: object) -> None:
        for windows in self._windows.values():
            windows.spool.close()
        self._windows.clear()

    async def discover(
        self,
        month: Month,
        wanted: tuple[str, ...] = (),
        on_gap: OnGap | None = None,  # noqa: ARG002 - nothing is searched
    ) -> tuple[Repository, ...]:
        """The repositories of the file, else those that the pull requests name; and those *wanted*, as vanished."""
        repositories = await in_thread(self._repositories_of, month)
        return with_vanished(month, repositories.all(), wanted)

    async def window(self, repository: Repository, month: Month) -> MergedWindow:
        """The pull requests of *repository* merged in *month*.

        Raises ItemFailure: `not_in_source` if no file has it, `incomplete` if the counts differ; ConfigurationError if
        there is no file of pull requests.
        """
        return await in_thread(self._window, repository, month)

    def _window(self, repository: Repository, month: Month) -> MergedWindow:
        windows = self._windows_of(month)
        names = (repository.full_name, *repository.aliases)
        known = next((window for name in names if (window := windows.repositories.get(name))), None)
        if known is None:
            raise ItemFailure(
                FailureKind.NOT_IN_SOURCE,
                f"{repository.full_name} is in none of {self._files}",
                remedy="Add it, or materialize `repositories` again from the same source",
            )
        rows = [self._named(row, repository) for row in windows.spool.rows(known.full_name.lower())]
        reported = windows.reported.get(known.full_name.lower(), len(rows))
        if reported != len(rows):
            raise ItemFailure(
                FailureKind.INCOMPLETE,
                f"the window {month} of {repository.full_name} is not complete",
                why=f"{self._files.pull_requests} holds {len(rows)} of it, {self._files.counts} says {reported}",
                remedy="Export it again",
            )
        return MergedWindow.of(repository, month, self._completion.complete(repository, rows), reported=reported)

    def _named(self, row: MergedPullRequest, repository: Repository) -> MergedPullRequest:
        """*row* under the id and name by which the month knows its repository."""
        return row.model_copy(
            update={
                "repository_id": repository.id,
                "repository": repository.full_name,
                "base_ref": row.base_ref or repository.default_branch,
            }
        )

    def _repositories_of(self, month: Month) -> Repositories:
        listed, named = self._files.repositories, self._files.pull_requests

        def read(problems: Problems) -> Repositories:
            if listed is not None:
                return read_repositories(listed, month, problems)
            assert named is not None  # noqa: S101 — one of the two is there
            return named_repositories(named, month, problems)

        with self._lock:
            if month not in self._repositories:
                self._repositories[month] = self._reading(read)
            return self._repositories[month]

    def _windows_of(self, month: Month) -> _Windows:
        path, counts = self._files.pull_requests, self._files.counts
        if path is None:
            raise ConfigurationError(
                f"{self._files} contains only repositories",
                remedy="Put pull_requests.parquet (or .csv, .jsonl) next to it, or name both files, comma separated",
            )
        with self._lock:
            if month not in self._windows:
                repositories, spool = self._repositories_of(month), Spool()

                def read(problems: Problems) -> dict[str, int]:
                    spool_pull_requests(path, month, repositories, problems, spool)
                    return {} if counts is None else read_counts(counts, month, repositories, problems)

                try:
                    self._windows[month] = _Windows(repositories, self._reading(read), spool)
                except BaseException:
                    spool.close()
                    raise
            return self._windows[month]

    def _reading(self, read: Callable[[Problems], T]) -> T:
        problems = Problems()
        with suppress(EnoughProblems):
            result = read(problems)
        problems.raise_any(str(self._files))
        return result
