"""Commits of a pull request: those of its branch, and those created by the merge."""

from __future__ import annotations

from collections.abc import Iterable

from .history import Mirror
from .log import Commit, read_commits

MOST_COMMITS = 250


def branch_commits(mirror: Mirror, base_sha: str, tips: Iterable[str]) -> list[Commit]:
    """Return the commits of *tips* that *base_sha* lacks, newest first; tips missing from the mirror are ignored.

    A squash or rebase leaves the branch's own commits only behind its head, which the host may have lost.
    """
    here = [tip for tip in dict.fromkeys(tips) if tip and mirror.has(tip)]
    if not here or not mirror.has(base_sha):
        return []
    return read_commits(mirror.path, f"--max-count={MOST_COMMITS}", revisions=[*here, f"^{base_sha}"])
