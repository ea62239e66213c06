"""Reading files at a commit, without a checkout."""

from __future__ import annotations

from typing import Protocol


class CommitReader(Protocol):
    """Read access to one repository's history; `Mirror` implements it."""

    def read(self, commit: str, path: str) -> bytes | None:
        """Return the content of *path* at *commit*; None if there is no such file."""

    def list(self, commit: str, folder: str = "") -> list[str]:
        """Paths of all files at *commit* below *folder*, sorted."""

    def complete(self, *commits: str, folder: str = "") -> None:
        """Prepare to read many files at *commits* below *folder*: they are fetched together."""

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        """Commits of the default branch after *commit* that change a file of these glob *patterns*, oldest first."""


class HistoryReader(CommitReader, Protocol):
    """The reader also has the history."""

    def earlier(self, commit: str, *patterns: str, most: int) -> tuple[str, ...]:
        """The last *most* commits up to *commit* that change a file of these glob *patterns*, newest first."""


class SubmoduleReader(CommitReader, Protocol):
    """Knows submodules, too."""

    def submodules(self, commit: str) -> dict[str, str]:
        """Path of each submodule at *commit* → the commit it is at."""
