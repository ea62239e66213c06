"""Windows of a month as items: which repositories have one, when it is requested again, and how it is stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection

from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.work import StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.ledger import items_in_state, rename_item
from formulacode_dagster.operating.store.pull_requests import MergedName, merged_names
from formulacode_dagster.operating.store.repositories import add_alias
from formulacode_dagster.operating.store.windows import names_taken_in, save_windows


def tracked_repositories(connection: Connection, month: str) -> list[Repository]:
    """Return the repositories that `repositories` ended as done, which have a window in *month*, most popular first."""
    done = set(items_in_state(connection, month, Stage.REPOSITORIES, ItemState.DONE))
    rows = [row for row in REPOSITORIES.read(connection, month) if row.full_name in done]
    return sorted(rows, key=lambda row: (-row.stars, row.full_name))


def window_item(repository: Repository, month: Month, now: datetime, offline: str = "") -> WorkItem[Repository]:
    """The window of *repository* as an item: asked for once when the month has settled, every time before that.

    *offline* is the state of an offline source, which settles nothing by itself: its windows are read whenever it is
    another one.
    """
    when = offline or ("settled" if month.settled(now) else now.isoformat())
    return WorkItem(repository.full_name, fingerprint(Stage.PULL_REQUESTS, repository.id, month.key, when), repository)


class Windows:
    """Stores windows as they come in, and counts the changes.

    A repository that was renamed since discovery is renamed in `repositories` too, unless the month has a window of it:
    items, task ids and the decisions of people about them go by the name that this has.
    """

    def __init__(self, month: Month, repositories: Sequence[Repository]) -> None:
        self._month = month.key
        self._repositories = {repository.id: repository for repository in repositories}
        self._renamed: dict[str, str] = {}
        self.counts: list[IntakeCount] = []

    def save(self, connection: Connection, windows: Sequence[MergedWindow]) -> None:
        """Replace *windows*, each in whole, inside the caller's transaction."""
        names = {repository.id: repository.full_name for repository in self._repositories.values()}
        renamed = [window.count for window in windows if window.count.repository != names[window.count.repository_id]]
        taken_in = names_taken_in(connection, self._month) if renamed else {}
        for count in renamed:
            known = names[count.repository_id]
            if taken_in.get(count.repository_id) == known:
                add_alias(connection, self._month, count.repository_id, count.repository, known)
            else:
                add_alias(connection, self._month, count.repository_id, known, count.repository)
                self._renamed[known] = names[count.repository_id] = count.repository
        self.counts += save_windows(
            connection, [window.called(names[window.count.repository_id]) for window in windows]
        )

    def rename_items(self, connection: Connection) -> None:
        """Rename the items of renamed repositories, so that their windows stay done."""
        for old, new in self._renamed.items():
            rename_item(connection, self._month, Stage.PULL_REQUESTS, old, new)

    def merged(self, connection: Connection, taken_in: StageSummary, besides: Collection[str] = ()) -> list[MergedName]:
        """The merged pull requests of the month's repositories, not of those that *taken_in* rejected by now.

        *besides* are items that are there whosever window they would be in.
        """
        rejected = {entry.item for entry in taken_in.standing if entry.state is ItemState.REJECTED}
        ids = {id_ for id_, repository in self._repositories.items() if repository.full_name not in rejected}
        return [
            name for name in merged_names(connection, self._month) if name.repository_id in ids or name.item in besides
        ]

    @property
    def changes(self) -> dict[str, int]:
        """Return how many rows the stored windows added, changed and removed."""
        return {
            "rows_added": sum(count.added for count in self.counts),
            "rows_changed": sum(count.changed for count in self.counts),
            "rows_removed": sum(count.removed for count in self.counts),
        }
