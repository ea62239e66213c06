"""Repositories and pull requests from a folder of bare mirrors, `owner/name.git`, without any API.

The history shows merges (`Merge pull request #N`), squashes (`… (#N)`) and, if the mirror has them, `refs/pull/N/head`;
see `derived.py` for what it lacks. `sandbox.json` in the folder completes it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.intake import MergedWindow, OnGap
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState
from formulacode_dagster.operating.cancellation.loops import in_thread
from formulacode_dagster.sources.git.asv_files import nearest_config
from formulacode_dagster.sources.git.blobs import is_filtered
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.faults import Fault, fault_of, translate
from formulacode_dagster.sources.git.log import read_commits, read_heads

from .derived import Landed, landed
from .identity import derived_id, with_vanished
from .local_source import LocalSource
from .side import linked_issues, newest_body, newest_title
from .side_file import RepositoryFacts, SideFile

AT_ONCE = 2
"""Histories that are read, and held in memory, at the same time."""


def mirrors_in(folder: Path) -> dict[str, Path]:
    """Return every `owner/name.git` of *folder* by `owner/name`, including links and unreadable ones."""
    folders = sorted(folder.glob("*/*.git"))
    return {f"{path.parent.name}/{path.name.removesuffix('.git')}": path for path in folders}


class MirrorsSource(LocalSource):
    """An IntakeSource over the mirrors of *folder*. A window reads the whole history of its mirror, and keeps nothing.

    Raises ConfigurationError if it has no mirror, or `sandbox.json` is malformed or names an unknown mirror.
    """

    def __init__(self, folder: Path) -> None:
        self._paths = mirrors_in(folder)
        if not self._paths:
            raise ConfigurationError(
                f"{folder} contains no mirror", remedy="Put bare repositories there as owner/name.git"
            )
        self._side = SideFile.read(folder).repositories
        strangers = sorted(set(self._side) - set(self._paths))
        if strangers:
            raise ConfigurationError(
                f"sandbox.json in {folder} tells of {', '.join(strangers)}",
                why="there is no such mirror",
                remedy="Add it as owner/name.git, or delete the entry",
            )
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def discover(
        self,
        month: Month,
        wanted: tuple[str, ...] = (),
        on_gap: OnGap | None = None,  # noqa: ARG002 - nothing is searched
    ) -> tuple[Repository, ...]:
        """Repositories whose default branch keeps an asv configuration, those *wanted*, and those that cannot be read.

        Unreadable ones are listed too, since their suite is unknown, and their windows fail.
        """
        asked = {name.lower() for name in wanted}

        async def look(name: str, path: Path) -> Repository | None:
            async with self._at_once:
                return await in_thread(self._look, month, name, path, name.lower() in asked)

        repositories = await asyncio.gather(*(look(name, path) for name, path in self._paths.items()))
        return with_vanished(month, [repository for repository in repositories if repository is not None], wanted)

    async def window(self, repository: Repository, month: Month) -> MergedWindow:
        """Return the pull requests of *repository* that its default branch merged in *month*, from the history.

        Raises ItemFailure: `not_in_source` when the folder has no such mirror, `mirror_broken`, `git`, `timeout`.
        """
        async with self._at_once:
            return await in_thread(self._window, repository, month)

    def _look(self, month: Month, name: str, path: Path, wanted: bool) -> Repository | None:
        facts = self._side.get(name)
        try:
            heads = read_heads(path)
            configuration = _configuration(path, heads.tip)
        except GitError:
            return _repository(month, name, facts)
        if not configuration and not wanted:
            return None
        known = _repository(month, name, facts, empty=not heads.tip)
        return known.model_copy(update={"default_branch": heads.default_branch, "config_path": configuration})

    def _window(self, repository: Repository, month: Month) -> MergedWindow:
        names = {name.lower(): name for name in self._paths}
        asked = (repository.full_name, *repository.aliases)
        name = next((names[other.lower()] for other in asked if other.lower() in names), None)
        if name is None:
            raise ItemFailure(
                FailureKind.NOT_IN_SOURCE,
                f"{repository.full_name} is not in the folder of mirrors",
                remedy="Add it as owner/name.git, or materialize `repositories` again from the same source",
            )
        try:
            branch, merges = self._read(name)
            merged = [merge for _, merge in sorted(merges.items()) if month.holds(merge.merged_at)]
            sizes = _sizes(self._paths[name], merged)
        except GitError as error:
            raise self._failure(error, name) from error
        rows = [
            self._row(name, branch, merge, size, repository, month) for merge, size in zip(merged, sizes, strict=True)
        ]
        return MergedWindow.of(repository, month, rows, reported=len(rows))

    def _failure(self, error: GitError, name: str) -> Exception:
        if fault_of(error) is Fault.BROKEN:
            why = error.stderr.splitlines()[-1] if error.stderr else ""
            return ItemFailure(
                FailureKind.MIRROR_BROKEN,
                f"the mirror {self._paths[name]} cannot be read",
                why=why,
                remedy="Make it anew",
            )
        return translate(error, "read the history of", name)

    def _read(self, name: str) -> tuple[str, dict[int, Landed]]:
        """The default branch, and everything it merged."""
        path, facts = self._paths[name], self._side.get(name, RepositoryFacts())
        heads = read_heads(path)
        line = read_commits(path, "--first-parent", revisions=[heads.tip]) if heads.tip else []
        issues = frozenset(issue.number for issue in facts.issues)
        merges = landed(path, name, heads, line, told=facts.pull_requests, issues=issues) if line else {}
        return heads.default_branch, merges

    def _row(
        self, name: str, branch: str, merge: Landed, changed_files: int, repository: Repository, month: Month
    ) -> MergedPullRequest:
        facts, body = merge.facts, newest_body(merge.facts, merge.body)
        counted = merge.head_known or facts.commit_count
        return MergedPullRequest(
            month=month.key,
            repository_id=repository.id,
            repository=repository.full_name,
            number=merge.number,
            title=newest_title(facts, merge.title),
            body=body,
            author=facts.author or merge.author or "ghost",
            labels=tuple(sorted(facts.labels)),
            created_at=merge.created_at,
            merged_at=merge.merged_at,
            base_ref=facts.base_ref or branch,
            head_sha=(merge.head_sha or "") if merge.head_known else "",
            merge_commit_sha=merge.commit.sha,
            commit_count=merge.commit_count if counted else 0,
            changed_files=changed_files,
            linked_issues=linked_issues(self._side, name, facts, body, merge.created_at),
        )


def _configuration(path: Path, tip: str) -> str:
    """Return the asv configuration at *tip* nearest to the top; empty if there is none."""
    if not tip:
        return ""
    listed = git(path, "ls-tree", "-r", "-z", "--name-only", tip).decode("utf-8", "backslashreplace").split("\0")
    return nearest_config(listed) or ""


def _repository(month: Month, name: str, facts: RepositoryFacts | None, *, empty: bool = False) -> Repository:
    told = facts or RepositoryFacts()
    given = told.model_fields_set
    return Repository(
        month=month.key,
        id=told.id or derived_id((*told.former_names, name)[0]),
        node_id="",
        full_name=name,
        aliases=tuple(sorted(told.former_names)),
        state=_state(told, empty),
        archived_at=told.archived_at if told.is_archived else None,
        stars=told.stars if "stars" in given else UNKNOWN_STARS,
        language=told.language if "language" in given else UNKNOWN_LANGUAGE,
        description=told.description,
        size_kb=told.size_kb or 0,
        config_path="",
    )


def _state(facts: RepositoryFacts, empty: bool) -> RepositoryState:
    if facts.is_gone:
        return RepositoryState.VANISHED
    if facts.is_fork:
        return RepositoryState.FORK
    if facts.is_private:
        return RepositoryState.PRIVATE
    if facts.is_archived:
        return RepositoryState.ARCHIVED
    return RepositoryState.EMPTY if empty else RepositoryState.ACTIVE


def _sizes(path: Path, merged: list[Landed]) -> list[int]:
    """Return the number of files changed by each of *merged*, renames counted once; twice without contents."""
    if not merged:
        return []
    spans = "".join(f"{merge.commit.sha} {merge.base_sha}".strip() + "\n" for merge in merged).encode()
    listing = ("diff-tree", "--stdin", "-r", "-z", "--root", "--always", "--name-only")
    try:
        raw = git(path, *listing, *([] if is_filtered(path) else ["-M"]), stdin=spans)
    except GitError:
        # renames are found by contents, which may be missing
        raw = git(path, *listing, stdin=spans)
    sizes: list[int] = []
    expected = iter(merge.commit.sha.encode() for merge in merged)
    following = next(expected)
    for entry in raw.split(b"\0"):
        if entry.strip() == following:
            sizes.append(0)
            following = next(expected, b"-")
        elif entry and sizes:
            sizes[-1] += 1
    return sizes
