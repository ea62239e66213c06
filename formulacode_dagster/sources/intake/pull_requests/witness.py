"""A second witness of merges: the mirrors' default branches, since a search index can lack a repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from formulacode_dagster.models.errors import FormulaCodeError, OutsideSystemError
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.sources.git.command import GitError
from formulacode_dagster.sources.git.faults import translate
from formulacode_dagster.sources.git.log import from_epoch, read_commits, read_heads
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.offline.marks import Mark, is_made_by_web, marks

MARGIN = timedelta(minutes=1)
"""A commit is made a moment before GitHub notes the merge: so near to its ends it may be another window's."""


@dataclass(frozen=True)
class ShownMerge:
    """A merge that a default branch shows."""

    repository_id: int
    number: int
    item: str
    sha: str

    @property
    def key(self) -> tuple[int, int]:
        """(repository id, number)."""
        return self.repository_id, self.number


@dataclass
class Testimony:
    """Merges in the mirrors of a month."""

    merges: list[ShownMerge] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    """Why a mirror could not be asked, by repository."""


def ask_mirrors(cache: MirrorCache, repositories: Sequence[Repository], month: Month) -> Testimony:
    """Return the merges of *month* on the default branches of *repositories*; mirrors that end earlier are fetched."""
    testimony = Testimony()
    for repository in repositories:
        try:
            testimony.merges += shown_merges(cache, repository, month)
        except OutsideSystemError as error:
            # it would be the same with all that are left
            left = repositories[repositories.index(repository) :]
            testimony.unread |= {unread.full_name: str(error) for unread in left}
            break
        except FormulaCodeError as error:
            testimony.unread[repository.full_name] = str(error)
    return testimony


def shown_merges(cache: MirrorCache, repository: Repository, month: Month) -> list[ShownMerge]:
    """The merges of *month* that the default branch of *repository* shows; raises as `MirrorCache.ensure`."""
    window = (f"--since={(month.start + MARGIN).isoformat()}", f"--until={(month.end - MARGIN).isoformat()}")
    with cache.ensure(repository.full_name, since=month.end) as mirror:
        try:
            heads = read_heads(mirror.path)
            line = read_commits(mirror.path, "--first-parent", *window, revisions=[heads.tip]) if heads.tip else []
        except GitError as error:
            raise translate(error, "read", repository.full_name) from error
    by_number = marks(line, heads)
    sure = {number: mark for number, mark in by_number.items() if _is_sure(mark)}
    # if GitHub has committed some, a number in the message of another commit refers to an issue
    return [
        ShownMerge(repository.id, number, item_key(repository.full_name, number), mark.commit.sha)
        for number, mark in sorted((sure or by_number).items())
        if month.holds(from_epoch(mark.commit.committed))
    ]


def _is_sure(mark: Mark) -> bool:
    return len(mark.commit.parents) > 1 or is_made_by_web(mark.commit)
