"""One commit of a repository for the readers of declarations: its file names and texts."""

from __future__ import annotations

import posixpath
from functools import cached_property

from formulacode_dagster.sources.git.reader import CommitReader


class Tree:
    """Read access to the files of one commit. Paths are relative to the top of the repository, `.` is the top."""

    def __init__(self, reader: CommitReader, commit: str) -> None:
        self._reader = reader
        self.commit = commit

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every path of the commit, sorted."""
        return tuple(sorted(self._reader.list(self.commit)))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.files)

    def has(self, path: str) -> bool:
        """Return True if *path* is a file of the commit."""
        return path in self._known

    def text(self, path: str) -> str | None:
        """Content of *path* as text; undecodable bytes are replaced, a byte order mark is left out. None: no file."""
        if not self.has(path):
            return None
        content = self._reader.read(self.commit, path)
        return None if content is None else content.decode("utf-8", errors="replace").removeprefix("\ufeff")

    def below(self, folder: str) -> tuple[str, ...]:
        """Paths of the files below *folder*."""
        if folder == ".":
            return self.files
        return tuple(path for path in self.files if path.startswith(f"{folder}/"))


def join(folder: str, relative: str) -> str | None:
    """*relative* as seen from *folder*, normalised; None when it leaves the repository."""
    path = posixpath.normpath(posixpath.join(folder, relative.replace("\\", "/")))
    return None if path == ".." or path.startswith(("../", "/")) else path
