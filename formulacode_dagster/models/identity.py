"""Names of repositories, pull requests and tasks: one format, one place each."""

from __future__ import annotations

import re

from .base import Frozen
from .errors import ConfigurationError, ItemFailure
from .reasons import FailureKind

STAND_INS = 1_000_000_000
"""The least number of a commit that no pull request brought; no repository has as many pull requests."""
_ITEM = re.compile(r"^(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<name>[A-Za-z0-9._-]+?)(?:#(?P<number>[1-9][0-9]*))?$")

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class ItemName(Frozen):
    """`owner/repo` or `owner/repo#123`, as people write it."""

    owner: str
    name: str
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> ItemName:
        """Read *text*; raises ConfigurationError when it is neither form."""
        match = _ITEM.match(text.strip())
        if match is None:
            raise ConfigurationError(
                f"{text!r} names neither a repository nor a pull request",
                remedy="Write it as owner/repo or owner/repo#123",
            )
        number = match["number"]
        return cls(owner=match["owner"], name=match["name"], number=int(number) if number else None)

    @property
    def repository(self) -> str:
        """`owner/repo`."""
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        return self.repository if self.number is None else f"{self.repository}#{self.number}"


def item_key(repository: str, number: int | None = None) -> str:
    """The ledger's key of a repository, or of a pull request when *number* is given."""
    return repository if number is None else f"{repository}#{number}"


def task_id(repository: str, number: int) -> str:
    """`owner__repo-number`, from the repository's name as of the merge."""
    owner, _, name = repository.partition("/")
    return f"{owner}__{name}-{number}"


def require_file_name(task_id: str) -> None:
    """Raise ItemFailure (`unreadable`) for the id of a task, of anybody's dataset, that no file may be named by."""
    if not _FILE_NAME.fullmatch(task_id):
        raise ItemFailure(
            FailureKind.UNREADABLE,
            f"{task_id!r} cannot be the name of a file",
            why="ids of tasks are owner__repo-number",
            remedy="Find out who made this dataset",
        )


def stand_in_number(sha: str) -> int:
    """The number under which the commit *sha*, which no pull request brought, is an item: 28 bits of its hash."""
    return STAND_INS + int(sha[:7], 16)


def is_stand_in(number: int) -> bool:
    """Return True if *number* comes from `stand_in_number`: GitHub has nothing of that number."""
    return number >= STAND_INS
