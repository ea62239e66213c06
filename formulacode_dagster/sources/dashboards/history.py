"""The commits of a repository in their order, from its mirror."""

from __future__ import annotations

from formulacode_dagster.sources.git.command import git
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.log import from_epoch, read_heads

from .collate import History


def history_of_mirror(mirror: Mirror) -> History:
    """Numbers, dates and tags of the commits of branches and tags; as in asv, children come after their parents.

    Raises GitError.
    """
    arguments = ("--date-order", "--reverse", "--branches", "--tags", "--format=%H %ct", "HEAD")
    lines = [line.split() for line in git(mirror.path, "log", *arguments).decode().splitlines()]
    tags: dict[str, list[str]] = {}
    listed = git(mirror.path, "for-each-ref", "refs/tags", "--format=%(refname:short)%00%(objectname)%00%(*objectname)")
    for line in listed.decode(errors="replace").splitlines():
        name, target, peeled = line.split("\0")
        tags.setdefault(peeled or target, []).append(name)
    return History(
        {commit: number for number, (commit, _) in enumerate(lines)},
        {commit: from_epoch(int(seconds)) for commit, seconds in lines},
        tags,
        read_heads(mirror.path).default_branch,
    )
