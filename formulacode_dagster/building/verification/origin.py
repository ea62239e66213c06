"""The host's knowledge about a task: the declared commit, and the change that the image must not reveal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from formulacode_dagster.building.specs import sources
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.missing_files import is_read_by_nothing, require_files

from .repository import ImageRepository
from .scan import telling_lines

EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
MOST_BYTES = 32 << 20
Tree = Mapping[str, tuple[str, str]]
"""Mode and blob id of every file, by path."""


@dataclass(frozen=True)
class GroundTruth:
    """Reference for the image."""

    base_sha: str
    tree: Tree
    """The files at the base, without those that no build or workload reads and that its source lacks."""
    reachable: frozenset[str]
    """Ids of every object in the history of the base."""
    solution: Mapping[str, str]
    """Path by blob id of the files that the change creates and the base does not hold."""
    changed: int
    """Number of files the change touches."""
    commits: frozenset[str] = frozenset()
    """Ids of the commits that brought it."""


class CommitSource(Protocol):
    """Source of the host's knowledge."""

    base_sha: str
    lines: frozenset[bytes]
    """Distinctive lines that the change adds."""

    def truth(self, store: ImageRepository) -> GroundTruth:
        """Return the reference for the image; *store* holds the image's own objects. Raises ItemFailure."""


class MirrorOrigin:
    """A pull request, and the mirror of its repository."""

    def __init__(self, mirror: Path, pr: PullRequest) -> None:
        self._mirror = mirror
        self._repository = pr.facts.repository
        self._merge = pr.facts.merge_commit_sha
        self._commits = frozenset({self._merge, pr.facts.head_sha} - {"", pr.change.base_sha})
        self._changed = [file.path for file in pr.change.files]
        self.base_sha = pr.change.base_sha
        self.lines = telling_lines(self._added())

    def truth(self, store: ImageRepository) -> GroundTruth:
        """Reference from the mirror only; raises ItemFailure as `require_files`."""
        del store
        lacking = require_files(self._repository, self._mirror, self.base_sha)
        base = sources.tree_of(self._mirror, self.base_sha)
        for path in lacking:
            base.pop(path, None)
        merge = sources.tree_of(self._mirror, self._merge)
        blobs = {blob for _, blob in base.values()} | {EMPTY_BLOB}
        left = {merge[path][1]: path for path in self._changed if path in merge and merge[path][1] not in blobs}
        reachable = frozenset(sources.reachable_objects(self._mirror, self.base_sha))
        return GroundTruth(self.base_sha, base, reachable, left, len(self._changed), self._commits)

    def _added(self) -> list[bytes]:
        options = ("-r", "--patch", "--unified=0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        try:
            return added_lines(git(self._mirror, "diff-tree", *options, self.base_sha, self._merge, most=MOST_BYTES))
        except GitError as error:
            if error.too_long:
                return []
            raise ItemFailure(
                FailureKind.MIRROR,
                f"the change cannot be read from {self._mirror}",
                why=error.stderr,
                remedy="Fetch it again",
            ) from error


class FolderOrigin:
    """A commit that a task folder declares, and the patch next to it, if there is one."""

    def __init__(self, base_sha: str, patch: bytes) -> None:
        self.base_sha = base_sha
        self.lines = telling_lines(added_lines(patch))
        self._changed = patch.count(b"\ndiff --git ") + patch.startswith(b"diff --git ")

    def truth(self, store: ImageRepository) -> GroundTruth:
        """Reference from the image's own objects, every one hashed: only the commit's true files have its id."""
        reachable, held = frozenset(store.reachable(self.base_sha)), store.all_objects()
        tree = {
            path: entry
            for path, entry in store.tree(self.base_sha).items()
            if entry[1] in held or not is_read_by_nothing(path)
        }
        return GroundTruth(self.base_sha, tree, reachable, {}, self._changed)


def added_lines(patch: bytes) -> list[bytes]:
    """The lines that a unified diff adds."""
    return [line[1:] for line in patch.split(b"\n") if line.startswith(b"+") and not line.startswith(b"+++ ")]
