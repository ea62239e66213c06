"""The commits of a sample repository, from its definition. Pure: names commits by marks, git gives them their SHAs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from formulacode_dagster.models.pull_request import MergeKind

from .definitions import CommitDefinition, Person, Push, SamplePullRequest, SampleRepository
from .edits import Tree, apply

WEB = Person(name="GitHub", email="noreply@github.com")
"""Committer of merges on the web page."""
BETWEEN_COMMITS = timedelta(minutes=17)


@dataclass(frozen=True)
class Commit:
    """A commit to be written. `mark` names it within its history."""

    mark: int
    parents: tuple[int, ...]
    tree: Tree
    author: Person
    authored: datetime
    committer: Person
    committed: datetime
    message: str


@dataclass(frozen=True)
class Landed:
    """Place of a pull request in the history, by marks. `base` is the commit it was merged onto."""

    pull_request: SamplePullRequest
    base: int
    head: int
    merge: int


@dataclass(frozen=True)
class History:
    """The whole history: commits (parents first), the tip of the default branch, the pull requests."""

    commits: tuple[Commit, ...]
    tip: int
    landed: tuple[Landed, ...]


def history_of(
    repository: SampleRepository, people: Mapping[str, Person], *, origin: SampleRepository | None = None
) -> History:
    """Return the history of *repository*, which starts as *origin*'s if it is a fork of that.

    Raises ValueError when an edit does not fit the files it is made to.
    """
    source = origin or repository
    building = _Building(people)
    building.start(source)
    if origin is not None:
        for landing in origin.landings:
            building.land(landing)
            if isinstance(landing, SamplePullRequest) and landing.number == repository.fork_after:
                break
        # The pull requests of the origin are not those of the fork.
        building.landed.clear()
    for landing in repository.landings:
        building.land(landing)
    return History(tuple(building.commits), building.trunk[-1], tuple(building.landed))


@dataclass
class _Building:
    people: Mapping[str, Person]
    commits: list[Commit] = field(default_factory=list)
    trunk: list[int] = field(default_factory=list)
    landed: list[Landed] = field(default_factory=list)

    def start(self, repository: SampleRepository) -> None:
        files = {path: content.encode() for path, content in repository.files.items()}
        founder, founded = self.people[repository.founder], repository.founded
        self.trunk.append(self._commit((), files, founder, founded, founder, founded, "Start the project\n"))

    def land(self, landing: Push | SamplePullRequest) -> None:
        if isinstance(landing, Push):
            self.trunk += self._line(self.trunk[-1], landing.commits, landing.author, landing.pushed)
        else:
            self._merge(landing)

    def _merge(self, pr: SamplePullRequest) -> None:
        base = self.trunk[-1]
        first_authored = pr.created - BETWEEN_COMMITS * (len(pr.commits) - 1)
        point = [mark for mark in self.trunk if self._of(mark).committed <= first_authored][-1]
        branch = self._line(point, pr.commits, pr.author, pr.created)
        author = self.people[pr.author]
        edits = [edit for commit in pr.commits for edit in commit.edits]
        match pr.merge:
            case MergeKind.MERGE:
                text = f"Merge pull request #{pr.number} from {pr.author}/{_branch_name(pr.title)}\n\n{pr.title}\n"
                merger = self.people[pr.merger or pr.author]
                tree = apply(self._of(base).tree, edits)
                self.trunk.append(self._commit((base, branch[-1]), tree, merger, pr.merged, WEB, pr.merged, text))
            case MergeKind.SQUASH:
                listed = "".join(f"\n* {commit.message}\n" for commit in pr.commits) if len(pr.commits) > 1 else ""
                text = f"{pr.title} (#{pr.number})\n{listed}"
                tree = apply(self._of(base).tree, edits)
                self.trunk.append(self._commit((base,), tree, author, pr.merged, WEB, pr.merged, text))
            case MergeKind.REBASE:
                merger = self.people[pr.merger or pr.author]
                for mark, definition in zip(branch, pr.commits, strict=True):
                    tree = apply(self._of(self.trunk[-1]).tree, definition.edits)
                    authored, text = self._of(mark).authored, self._of(mark).message
                    parent = (self.trunk[-1],)
                    self.trunk.append(self._commit(parent, tree, author, authored, merger, pr.merged, text))
        self.landed.append(Landed(pr, base=base, head=branch[-1], merge=self.trunk[-1]))

    def _line(self, parent: int, definitions: Sequence[CommitDefinition], login: str, last: datetime) -> list[int]:
        """Commits one after the other, the last one written at *last*."""
        author, marks = self.people[login], [parent]
        for number, definition in enumerate(definitions, 1):
            moment = last - BETWEEN_COMMITS * (len(definitions) - number)
            tree = apply(self._of(marks[-1]).tree, definition.edits)
            text = f"{definition.message.strip()}\n"
            marks.append(self._commit((marks[-1],), tree, author, moment, author, moment, text))
        return marks[1:]

    def _commit(
        self,
        parents: tuple[int, ...],
        tree: Tree,
        author: Person,
        authored: datetime,
        committer: Person,
        committed: datetime,
        message: str,
    ) -> int:
        mark = len(self.commits) + 1
        self.commits.append(Commit(mark, parents, tree, author, authored, committer, committed, message))
        return mark

    def _of(self, mark: int) -> Commit:
        return self.commits[mark - 1]


def _branch_name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].rstrip("-")
