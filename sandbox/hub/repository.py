"""A repository of the sandbox Hub: immutable commits, a branch and tags, in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.operating.files.atomic import write_atomically
from sandbox.content import ContentStore

BRANCH = "main"


class StoredFile(Frozen):
    """A file of a commit. Its content is in the content store under `sha256`."""

    sha256: str
    blob_id: str = Field(description="git's SHA-1 of the content, or of the pointer for a file kept as LFS")
    size: int
    is_lfs: bool


class Commit(Frozen):
    """A commit: the whole tree by path."""

    parent: str | None
    title: str
    message: str
    author: str
    date: datetime
    files: dict[str, StoredFile]

    @property
    def sha(self) -> str:
        """Forty hexadecimal digits over everything in it."""
        return hashlib.sha1(self.model_dump_json().encode(), usedforsecurity=False).hexdigest()


class Refs(Frozen):
    """Targets of the branch and the tags."""

    branches: dict[str, str] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)


class RevisionNotFoundError(Exception):
    """No branch, tag or commit of that name."""


class StaleParentError(Exception):
    """The branch has moved on."""


class TagExistsError(Exception):
    """The tag is taken."""


class Repository:
    """One `owner/name`. Callers serialize writes."""

    def __init__(self, folder: Path, contents: ContentStore) -> None:
        self._folder = folder
        self._contents = contents

    @property
    def exists(self) -> bool:
        """True if it was created."""
        return self._refs_file.exists()

    @property
    def _refs_file(self) -> Path:
        return self._folder / "refs.json"

    def create(self, author: str) -> None:
        """Create it with the first commit that every repository of the Hub starts with."""
        attributes = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
        files = {".gitattributes": self.regular_file(attributes)}
        first = Commit(
            parent=None, title="initial commit", message="", author=author, date=datetime.now(UTC), files=files
        )
        self._store(first)
        self._write_refs(Refs(branches={BRANCH: first.sha}))

    def refs(self) -> Refs:
        """The branch and the tags as they are now."""
        return Refs.model_validate_json(self._refs_file.read_bytes())

    def resolve(self, revision: str) -> tuple[str, Commit]:
        """Sha and commit of a branch, a tag or a full commit sha; raises RevisionNotFoundError."""
        refs = self.refs()
        name = revision.removeprefix("refs/heads/").removeprefix("refs/tags/")
        sha = refs.branches.get(name) or refs.tags.get(name) or name
        path = self._folder / "commits" / f"{sha}.json"
        if len(sha) != 40 or not sha.isalnum() or not path.exists():
            raise RevisionNotFoundError(revision)
        return sha, Commit.model_validate_json(path.read_bytes())

    def history(self, revision: str) -> list[tuple[str, Commit]]:
        """The commits up to *revision*, latest first."""
        found = [self.resolve(revision)]
        while parent := found[-1][1].parent:
            found.append(self.resolve(parent))
        return found

    def commit(
        self,
        *,
        title: str,
        message: str,
        author: str,
        changes: Mapping[str, StoredFile | None],
        expected_parent: str | None,
    ) -> str:
        """Put *changes* (None deletes) on the branch; returns the sha. Raises StaleParentError."""
        head, before = self.resolve(BRANCH)
        if expected_parent is not None and not head.startswith(expected_parent):
            raise StaleParentError(f"{BRANCH} is at {head}")
        files = {**before.files, **{path: content for path, content in changes.items() if content is not None}}
        for path in (path for path, content in changes.items() if content is None):
            files = {
                name: content for name, content in files.items() if name != path and not name.startswith(f"{path}/")
            }
        made = Commit(parent=head, title=title, message=message, author=author, date=datetime.now(UTC), files=files)
        self._store(made)
        refs = self.refs()
        self._write_refs(Refs(branches={**refs.branches, BRANCH: made.sha}, tags=refs.tags))
        return made.sha

    def tag(self, name: str, revision: str) -> None:
        """Point a new tag to *revision*; raises TagExistsError, RevisionNotFoundError."""
        sha, _ = self.resolve(revision)
        refs = self.refs()
        if name in refs.tags:
            raise TagExistsError(name)
        self._write_refs(Refs(branches=refs.branches, tags={**refs.tags, name: sha}))

    def regular_file(self, content: bytes) -> StoredFile:
        """Keep *content* as a file in git."""
        return StoredFile(
            sha256=self._contents.put(content), blob_id=_git_blob(content), size=len(content), is_lfs=False
        )

    def _store(self, commit: Commit) -> None:
        write_atomically(self._folder / "commits" / f"{commit.sha}.json", commit.model_dump_json().encode())

    def _write_refs(self, refs: Refs) -> None:
        write_atomically(self._refs_file, refs.model_dump_json().encode())


def lfs_file(sha256: str, size: int) -> StoredFile:
    """A file whose content was uploaded beforehand."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
    return StoredFile(sha256=sha256, blob_id=_git_blob(pointer), size=size, is_lfs=True)


def _git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
