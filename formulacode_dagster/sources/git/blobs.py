"""Contents that a blob-filtered mirror lacks, fetched in one request."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from .command import git
from .scratch import scratch_repository

FETCH_SECONDS = 1800.0
REMOTE = "origin"
NO_OBJECT = "0" * 40
"""git's placeholder for the side on which a file does not exist."""


def is_filtered(repository: Path) -> bool:
    """Return True if *repository* leaves out objects, to be fetched when needed."""
    configuration = repository / "config"
    return configuration.exists() and "promisor = true" in configuration.read_text()


def fetch_missing(repository: Path, wanted: Collection[str]) -> None:
    """Fetch those of the objects *wanted* that *repository* lacks. Raises GitError."""
    if not is_filtered(repository):
        return
    missing = missing_objects(repository, set(wanted) - {NO_OBJECT})
    if not missing:
        return
    git(
        repository,
        # single objects need no negotiation; otherwise git sends all its commits to the server
        "-c",
        "fetch.negotiationAlgorithm=noop",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--filter=blob:none",
        "--stdin",
        REMOTE,
        stdin="".join(f"{sha}\n" for sha in sorted(missing)).encode(),
        seconds=FETCH_SECONDS,
    )


def missing_objects(repository: Path, wanted: Collection[str]) -> set[str]:
    """Return those of the objects *wanted* that are not in *repository*. Raises GitError.

    Asked through a scratch repository that knows of no server: a filtered mirror would fetch each of them.
    """
    names = "".join(f"{sha}\n" for sha in wanted).encode()
    with scratch_repository(repository) as scratch:
        out = git(scratch, "cat-file", "--batch-check", "--buffer", stdin=names)
    return {line.split()[0].decode() for line in out.splitlines() if line.endswith(b" missing")}
