"""The faults of `bench/faults.py`: one plan for each try at a month, drawn from a seed, and how they are injected.

A process is killed, a disk is full, a connection ends: at one write of files or rows, counted from the beginning.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from sqlalchemy import event
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner import runner
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.selection.classification import endpoint
from sandbox.github.faults import Fault as GitHubFault
from sandbox.model.faults import Fault as ModelFault


class Kind(StrEnum):
    """What goes wrong."""

    KILL_ROW = "kill -9 at a row's write"
    KILL_COMMIT = "kill -9 after a commit"
    KILL_FILE = "kill -9 at a file's write"
    DISK_FULL = "disk full at a file's write"
    POSTGRES_FULL = "Postgres: disk full"
    POSTGRES_CUT = "Postgres: connection ends"
    POSTGRES_UNSURE = "Postgres: no answer to a commit"
    GITHUB = "GitHub: faults at random"
    GITHUB_NETWORK = "GitHub: connections break"
    MODEL = "model: faults"
    DOCKER = "Docker engine"
    REGISTRY = "registry"
    HUB = "Hub"
    CLOCK = "clock jumps"
    LEASES = "server's clock jumps"
    SECOND_RUN = "two runs at once"


WRITES = (Kind.KILL_ROW, Kind.KILL_COMMIT, Kind.KILL_FILE)
"""A process ends; every write is tried in turn."""
ROWS = (Kind.KILL_ROW, Kind.POSTGRES_FULL, Kind.POSTGRES_CUT, Kind.LEASES)
COMMITS = (Kind.KILL_COMMIT, Kind.POSTGRES_UNSURE)
FILES = (Kind.KILL_FILE, Kind.DISK_FULL)
PASSING_GITHUB = (
    *(GitHubFault.BAD_GATEWAY, GitHubFault.UNAVAILABLE, GitHubFault.PRIMARY_LIMIT, GitHubFault.SECONDARY_LIMIT),
    *(GitHubFault.TRUNCATED, GitHubFault.HALF_PAGE, GitHubFault.NULL_NODE, GitHubFault.TIMED_OUT),
    *(GitHubFault.FIELD, GitHubFault.INCOMPLETE, GitHubFault.GONE, GitHubFault.DROPPED, GitHubFault.RESET),
    GitHubFault.UNAUTHORIZED,
)
MODEL_FAULTS = tuple(fault for fault in ModelFault if fault not in (ModelFault.HANG, ModelFault.OPPOSITE))
"""A model that gives the other verdict is no fault that a platform can see."""
ENGINE_STAGES = {Kind.DOCKER: (Stage.IMAGES, Stage.MEASUREMENTS), Kind.REGISTRY: (Stage.PUBLISHED_IMAGES,)}
DAY = 86_400.0
CALLS = 6
"""Each outside system answers about so many in a month."""


@dataclass(frozen=True)
class Injection:
    """One fault: *at* which write, call or item, counted from 1, and in which *way*."""

    kind: Kind
    at: int = 1
    way: int = 0


@dataclass(frozen=True)
class Sizes:
    """Number of writes of a run without faults."""

    rows: int
    commits: int
    files: int

    def of(self, kind: Kind) -> int:
        """How often *kind* may strike."""
        if kind in ROWS or kind in COMMITS or kind in FILES:
            return self.rows if kind in ROWS else self.commits if kind in COMMITS else self.files
        return CALLS


Plan = Sequence[Injection]
WRITTEN = Sizes(rows=160, commits=140, files=190)
"""Number of writes that plans are drawn for, about those of a month: so a seed is the same on every machine."""


def plan_of(seed: int) -> list[Plan]:
    """The tries that go wrong of *seed*: one to three, of one to three faults each; below 0, one kill at a write."""
    if seed < 0:
        return [systematic()[-seed - 1]]
    dice = random.Random(seed)  # noqa: S311 - the same every time, no secret
    return [
        [
            Injection(kind, dice.randint(1, WRITTEN.of(kind)), dice.randrange(1_000))
            for kind in dice.sample(list(Kind), dice.choice((1, 1, 2, 3)))
        ]
        for _ in range(dice.choice((1, 1, 2, 3)))
    ]


def systematic() -> list[Plan]:
    """One plan for each write at which a process may end."""
    return [[Injection(kind, at)] for kind in WRITES for at in range(1, WRITTEN.of(kind) + 1)]


@dataclass
class Injector:
    """Counts the writes of this process, and strikes."""

    say: Callable[[Kind], None]
    """Hears of each fault before it strikes."""
    plan: Plan = ()
    home: Path = Path()
    counts: Counter[str] = field(default_factory=Counter)
    """Of `rows`, `commits` and `files`, and of items of stages whose outside system is a stand-in."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def restart(self, plan: Plan, home: Path) -> None:
        """Count from the beginning, for another try."""
        self.plan, self.home, self.counts = plan, home, Counter()

    def install(self, database: Database) -> None:
        """Watch statements of *database* and files below the home; for the rest of this process."""
        event.listen(database.engine, "before_cursor_execute", self._statement)
        dialect: Any = database.engine.dialect
        commit = dialect.do_commit

        def do_commit(connection: Any) -> None:
            commit(connection)
            self._strike(self._count("commits"), COMMITS, lambda: None)

        dialect.do_commit = do_commit
        sys.addaudithook(self._file)
        # waits for the model pass a hundred times as fast, those for further results ten times
        setattr(runner, "KEEP_SECONDS", runner.KEEP_SECONDS / 10)  # noqa: B010
        hasty = {**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 100)}
        setattr(endpoint, "asyncio", SimpleNamespace(**hasty))  # noqa: B010

    def disturb(self, stage: str, item: str) -> None:
        """Raise as Docker or the registry does, if it is the turn of *item*."""
        for kind, stages in ENGINE_STAGES.items():
            if stage in stages and (due := self._due(kind, self._count(kind))):
                self.say(kind)
                raise (
                    OutsideSystemError(kind.name.lower(), "does not answer", why="injected"),
                    ItemFailure(FailureKind.TIMEOUT, f"{item} took too long"),
                    OSError(errno.ENOSPC, "No space left on device"),
                    MemoryError(),
                )[due.way % 4]

    def _count(self, name: str) -> int:
        with self._lock:
            self.counts[name] += 1
            return self.counts[name]

    def _due(self, kind: Kind, count: int) -> Injection | None:
        return next((each for each in self.plan if each.kind is kind and each.at == count), None)

    def _strike(self, count: int, kinds: Sequence[Kind], cut: Callable[[], object]) -> None:
        for kind in kinds:
            if self._due(kind, count) is None:
                continue
            self.say(kind)
            if kind in WRITES:
                os.kill(os.getpid(), signal.SIGKILL)
            elif kind is Kind.DISK_FULL:
                raise OSError(errno.ENOSPC, "No space left on device")
            elif kind is Kind.POSTGRES_UNSURE:
                import psycopg

                raise psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")
            else:
                cut()

    def _statement(self, _c: Any, cursor: Any, statement: str, *_: Any) -> None:
        if not statement.lstrip().startswith(("INSERT", "UPDATE", "DELETE", "WITH")):
            return
        count = self._count("rows")

        def cut() -> None:
            if due := self._due(Kind.POSTGRES_FULL, count):
                words = "could not extend file: No space left on device"
                cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION '{words}' USING ERRCODE = '53100'; END $$")
            elif due := self._due(Kind.LEASES, count):
                moved = "UPDATE claims SET lease_until = lease_until + make_interval(hours => %s)"
                cursor.execute(moved, ((-3, 3)[due.way % 2],))
            else:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        self._strike(count, ROWS, cut)

    def _file(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name not in ("open", "os.rename", "os.mkdir", "os.remove", "subprocess.Popen"):
            return
        if name == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if name != "subprocess.Popen" and str(self.home) not in str(arguments[0]):
            return
        self._strike(self._count("files"), FILES, lambda: None)


class Breaking(httpx.AsyncHTTPTransport):
    """HTTP whose connections break, from the *at*-th request on for a few of them."""

    def __init__(self, injection: Injection, say: Callable[[Kind], None]) -> None:
        super().__init__()
        self._injection, self._say, self._count = injection, say, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer, unless it breaks: before the request was sent, or after."""
        self._count += 1
        way = self._injection.way
        if not self._injection.at <= self._count < self._injection.at + 1 + way % 9:
            return await super().handle_async_request(request)
        self._say(Kind.GITHUB_NETWORK)
        if way % 2:
            await super().handle_async_request(request)
        raise (httpx.ConnectError, httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)[way % 4]("injected")


class Flaky:
    """An ASGI application that fails at one call: with a status instead of an answer, or after doing what was asked."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.restart(None)

    def restart(self, injection: Injection | None) -> None:
        """Count calls from the beginning, towards *injection*."""
        self.injection, self.calls, self.struck = injection, 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or fail."""
        if scope["type"] == "http":
            self.calls += 1
            if self.injection is not None and self.calls == self.injection.at:
                self.struck += 1
                if self.injection.way % 2:
                    await self.app(scope, receive, _nothing)
                status = (500, 502, 503, 504, 429, 507)[self.injection.way % 6]
                await PlainTextResponse("injected", status)(scope, receive, send)
                return
        await self.app(scope, receive, send)


async def _nothing(_: Any) -> None:
    """Tell nobody."""
