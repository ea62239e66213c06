"""The objects of an image's repository, copied to the host, and read there by the host's own git."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from formulacode_dagster.building.specs.sources import GIT_SECONDS
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.objects import Commit, ObjectReader, tree_entries

TREE = b"40000"
SUBMODULE = b"160000"
OBJECT_BYTES = 512 * 1024 * 1024
"""Limit of an object in bytes, several times that of GitHub."""


class ImageRepository:
    """A bare repository of ours around the objects of an image: nothing the image configured is in force.

    Implements `git.reader.CommitReader`. Every object is hashed before it is believed.
    """

    def __init__(self, folder: Path) -> None:
        """Make it in *folder*, which does not exist yet; the objects then go to `objects`."""
        self.folder = folder
        git(None, "init", "--quiet", "--bare", "--template=", str(folder))
        self._reader = ObjectReader(folder, most=OBJECT_BYTES)
        self._trees: dict[str, dict[str, tuple[str, str]]] = {}

    @property
    def objects(self) -> Path:
        """Place of the objects."""
        return self.folder / "objects"

    def close(self) -> None:
        """End the process that reads."""
        self._reader.close()

    def all_objects(self) -> set[str]:
        """Ids of all objects, tags left out: they are names, not content."""
        listing = self._git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
        pairs = (line.split() for line in listing.splitlines())
        return {sha for kind, sha in pairs if kind != "tag"}

    def reachable(self, commit: str) -> set[str]:
        """Ids of every commit, tree and blob in the history of *commit*."""
        return set(self._git("rev-list", "--objects", "--no-object-names", "--missing=allow-any", commit).split())

    def tree(self, commit: str) -> dict[str, tuple[str, str]]:
        """Mode and blob id of every file at *commit*, by path; submodules are left out. Raises ItemFailure."""
        if commit not in self._trees:
            root = Commit.read(commit, self._object(commit, "commit")).tree
            self._trees[commit] = dict(self._entries(root, ""))
        return self._trees[commit]

    def read(self, commit: str, path: str) -> bytes | None:
        """See `CommitReader.read`."""
        entry = self.tree(commit).get(path)
        return None if entry is None else self._object(entry[1], "blob")

    def complete(self, *commits: str, folder: str = "") -> None:
        """All that it may ever read is here."""

    def list(self, commit: str, folder: str = "") -> list[str]:
        """See `CommitReader.list`."""
        start = f"{folder.strip('/')}/" if folder.strip("/") else ""
        return sorted(path for path in self.tree(commit) if path.startswith(start))

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        """None: an image holds nothing after its commit."""
        del commit, patterns
        return ()

    def _entries(self, tree: str, above: str) -> Iterator[tuple[str, tuple[str, str]]]:
        for mode, raw, sha in tree_entries(self._object(tree, "tree")):
            name = above + raw.decode(errors="surrogateescape")
            if mode == TREE:
                yield from self._entries(sha, f"{name}/")
            elif mode != SUBMODULE:
                yield name, (mode.decode(), sha)

    def _object(self, sha: str, kind: str) -> bytes:
        try:
            blob = self._reader.get(sha.encode())
        except GitError as error:
            raise ItemFailure(
                FailureKind.DECLARED_COMMIT, f"the image's repository is damaged at {sha}", why=str(error)
            ) from error
        if blob is None or blob[0] != kind:
            raise ItemFailure(FailureKind.DECLARED_COMMIT, f"the image's repository lacks the {kind} {sha}")
        content = blob[1]
        digest = hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
        if digest != sha:
            raise ItemFailure(FailureKind.DECLARED_COMMIT, f"the image's repository holds another {kind} as {sha}")
        return content

    def _git(self, *arguments: str) -> str:
        try:
            return git(self.folder, *arguments, seconds=GIT_SECONDS).decode(errors="surrogateescape")
        except GitError as error:
            what = "the image's repository cannot be read"
            raise ItemFailure(FailureKind.DECLARED_COMMIT, what, why=error.stderr[-300:]) from error
