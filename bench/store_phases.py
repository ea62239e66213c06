"""The phases that `bench/store.py` measures in a process each: windows, changes, reading, and the former way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.postgresql import insert
from store_month import MONTH, Generator

from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.pull_request import Change, MergedPullRequest
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import BatchWork, Finish, Outcome, StageRun, WorkItem
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS, MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.operating.store.pull_requests import (
    MergedName,
    done_items,
    iterate_done,
    merged_names,
    save_changes,
)
from formulacode_dagster.sources.intake.pull_requests.windows import Windows

MIRROR_THREADS = 2


class TimedDatabase(Database):
    """Adds up the seconds inside transactions."""

    seconds = 0.0

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """As always, with the elapsed time."""
        started = time.perf_counter()
        try:
            with super().transaction() as connection:
                yield connection
        finally:
            self.seconds += time.perf_counter() - started


Keep = Callable[[Connection, Sequence[MergedWindow]], None]


def take_in(database: TimedDatabase, source: Generator, keep: Keep) -> int:
    """The windows, requested all at once as in the asset; return the number of rows."""

    async def window(items: Sequence[WorkItem[Repository]], finish: Finish[Repository, MergedWindow]) -> None:
        for item in items:
            finish(item, Outcome(source.window(item.value)))

    repositories = source.repositories
    items = [WorkItem(repository.full_name, str(time.time()), repository) for repository in repositories]
    run = StageRun(database, Stage.PULL_REQUESTS, MONTH.key, "bench")
    with database.transaction() as connection:
        REPOSITORIES.save(connection, repositories)
    database.seconds = 0.0
    done = asyncio.run(run_items(run, ItemKind.REPOSITORY, items, BatchWork(window), keep))
    assert done.count(ItemState.DONE) == len(items)
    with Database.transaction(database) as connection:
        return len(merged_names(connection, MONTH.key))


def windows(database: TimedDatabase, source: Generator) -> int:
    """Windows as they are kept now."""
    return take_in(database, source, Windows(MONTH, source.repositories).save)


def windows_the_former_way(database: TimedDatabase, source: Generator) -> int:
    """Windows as they were kept: all rows of the window deleted, then upserted one by one in a batch."""
    table = MERGED_PULL_REQUESTS.table
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changes = {name: statement.excluded[name] for name in MergedPullRequest.model_fields if name not in keys}
    upsert = statement.on_conflict_do_update(index_elements=keys, set_=changes)

    def keep(connection: Connection, taken: Sequence[MergedWindow]) -> None:
        for entry in taken:
            window = (table.c.month == entry.count.month, table.c.repository_id == entry.count.repository_id)
            connection.execute(delete(table).where(*window))
            rows = []
            for row in entry.pull_requests:
                plain = row.model_dump(mode="json")
                rows.append({**plain, "created_at": row.created_at, "merged_at": row.merged_at, "digest": ""})
            connection.execute(upsert, rows)
            INTAKE_COUNTS.save(connection, [entry.count])

    return take_in(database, source, keep)


def changes(database: TimedDatabase, source: Generator) -> int:
    """A change and a patch for each, two at a time as the asset does."""

    async def change(item: WorkItem[MergedName]) -> Outcome[tuple[Change, bytes]]:
        return Outcome(await asyncio.to_thread(source.change, item.value))

    with database.transaction() as connection:
        items = [WorkItem(name.item, name.digest, name) for name in merged_names(connection, MONTH.key)]
    run = StageRun(database, Stage.PULL_REQUESTS, MONTH.key, "bench")
    database.seconds = 0.0
    done = asyncio.run(run_items(run, ItemKind.PULL_REQUEST, items, change, save_changes, concurrency=MIRROR_THREADS))
    return done.count(ItemState.DONE)


def reading(read: Callable[[Connection], int]) -> Callable[[TimedDatabase, Generator], int]:
    """A phase that only reads."""

    def phase(database: TimedDatabase, _: Generator) -> int:
        with database.transaction() as connection:
            return read(connection)

    return phase


def iterate(connection: Connection) -> int:
    """Iterate over all finished items, without keeping any."""
    return sum(1 for _ in iterate_done(connection, MONTH.key, Stage.PULL_REQUESTS))


PHASES: dict[str, Callable[[TimedDatabase, Generator], int]] = {
    "nothing": lambda _, source: len(source.repositories),
    "windows": windows,
    "windows_unchanged": windows,
    "changes": changes,
    "read_names": reading(lambda connection: len(merged_names(connection, MONTH.key))),
    "read_done_items": reading(lambda connection: len(done_items(connection, MONTH.key, Stage.PULL_REQUESTS))),
    "read_ledger": reading(lambda connection: len(entries_of(connection, MONTH.key, Stage.PULL_REQUESTS))),
    "iterate_done": reading(iterate),
    "read_whole": reading(lambda connection: len(MERGED_PULL_REQUESTS.read(connection, MONTH.key))),
    "windows_changed": windows,
    "former_windows": windows_the_former_way,
    "former_windows_unchanged": windows_the_former_way,
    "former_windows_changed": windows_the_former_way,
}
