"""Download a published site into a folder: politely, and resumable after an interruption."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from formulacode_dagster.operating.cancellation.loops import in_thread
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically

from .faults import DashboardError, Fault, FaultKind
from .folder import unusable
from .index import INDEX, INFO, REGRESSIONS, SiteIndex, parse_index
from .server import Answer, Server

RECORD = ".fetched.jsonl"
"""Record of fetched files by index, one line each; the last line of a path counts."""
AT_ONCE = 8
MOST_FAILURES_IN_A_ROW = 5
"""After this many consecutive failures the site counts as down."""
REMEDY = "Run it again later to continue"


@dataclass(frozen=True)
class Fetched:
    """A file as it was fetched; *index* is the SHA-256 of the index it was fetched for."""

    path: str
    status: int
    index: str
    etag: str = ""
    modified: str = ""


@dataclass
class Download:
    """Result of a download; faults concern files that are missing from the folder, or outdated in it."""

    requests: int
    fetched: int = 0
    unchanged: int = 0
    absent: int = 0
    kept: int = 0
    """Fetched for this index by an earlier run."""
    faults: tuple[Fault, ...] = ()


async def download(
    server: Server, folder: Path, at_once: int = AT_ONCE, on_progress: Callable[[int, int], None] | None = None
) -> Download:
    """Download the files that the index of *server* lists into *folder*, and replace its index last.

    Raises DashboardError if the site is unavailable, forbids it, or was republished meanwhile; files fetched by then
    stay and are not requested again. Raises OutsideSystemError if the disk is full.
    """
    await server.read_robots()
    content = await _content(server, INDEX)
    index = parse_index(content)
    if isinstance(index, Fault):
        raise DashboardError(server.url, index, "Give the URL of an asv site with an index.json next to its page")
    work = _Work(server, folder, hashlib.sha256(content).hexdigest(), on_progress)
    await work.all(_paths(index), 2 + len(index.benchmarks) + index.graph_count, at_once)
    if await _content(server, INDEX) != content:
        raise DashboardError(
            server.url, Fault(INDEX, FaultKind.CHANGED), "Run it again, since the site was republished"
        )
    await in_thread(_write, folder, INDEX, content)
    return work.result()


def _paths(index: SiteIndex) -> Iterator[tuple[str, ...]]:
    """Iterate over the files of a site except its index, with their possible places; site-wide files first."""
    yield from ((INFO,), (REGRESSIONS,))
    yield from ((path,) for _, path in index.summaries())
    yield from (paths for *_, paths in index.graphs())


async def _content(server: Server, path: str) -> bytes:
    answer = await server.get(path)
    if isinstance(answer, Fault):
        forbidden = answer.kind is FaultKind.FORBIDDEN
        raise DashboardError(server.url, answer, "Clone its gh-pages branch instead" if forbidden else REMEDY)
    if answer.status != 200:
        fault = Fault(path, FaultKind.ABSENT, f"HTTP {answer.status}")
        raise DashboardError(server.url, fault, "Give the URL of an asv site with an index.json next to its page")
    return answer.content


def _write(folder: Path, path: str, content: bytes) -> None:
    with disk_errors(f"{folder}/{path}"):
        write_atomically(folder / path, content)


class _Work:
    """The files of one site on their way into its folder."""

    def __init__(
        self, server: Server, folder: Path, index: str, on_progress: Callable[[int, int], None] | None
    ) -> None:
        self._server = server
        self._folder = folder
        self._index = index
        self._on_progress = on_progress or (lambda _done, _total: None)
        self._record = folder / RECORD
        self._fetched = _read_record(self._record)
        self._failures_in_a_row = 0
        self._faults: list[Fault] = []
        self._result = Download(0)

    async def all(self, files: Iterator[tuple[str, ...]], total: int, at_once: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        done = 0

        async def drain() -> None:
            nonlocal done
            for paths in files:
                await self._file(paths)
                done += 1
                self._on_progress(done, total)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(drain())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def result(self) -> Download:
        self._result.requests = self._server.requests
        self._result.faults = tuple(self._faults)
        return self._result

    async def _file(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            if await self._place(path):
                return
        self._result.absent += 1

    async def _place(self, path: str) -> bool:
        """Bring the file at *path*; False when the site has none there."""
        if (fault := unusable(path)) is not None:
            self._faults.append(fault)
            return True
        before = self._fetched.get(path)
        if before is not None and before.status == 200 and not (self._folder / path).is_file():
            before = None
        if before is not None and before.index == self._index:
            self._result.kept += before.status == 200
            return before.status == 200
        known = (before.etag, before.modified) if before is not None and before.status == 200 else ("", "")
        answer = await self._server.get(path, *known)
        if isinstance(answer, Fault):
            self._failed(answer)
            return True
        self._failures_in_a_row = 0
        if answer.status == 200:
            await in_thread(_write, self._folder, path, answer.content)
            self._result.fetched += 1
        elif answer.status == 304:
            self._result.unchanged += 1
        else:
            (self._folder / path).unlink(missing_ok=True)
        self._note(path, answer, before)
        return answer.status in (200, 304)

    def _failed(self, fault: Fault) -> None:
        self._faults.append(fault)
        if fault.kind is not FaultKind.FORBIDDEN:
            self._failures_in_a_row += 1
        if self._failures_in_a_row >= MOST_FAILURES_IN_A_ROW:
            raise DashboardError(self._server.url, fault, REMEDY)

    def _note(self, path: str, answer: Answer, before: Fetched | None) -> None:
        fetched = Fetched(path, answer.status, self._index, answer.etag, answer.modified)
        if answer.status == 304 and before is not None:
            fetched = Fetched(path, 200, self._index, answer.etag or before.etag, answer.modified or before.modified)
        self._fetched[path] = fetched
        with disk_errors(str(self._record)), self._record.open("a") as file:
            file.write(json.dumps(asdict(fetched)) + "\n")


def _read_record(path: Path) -> dict[str, Fetched]:
    """Read the records in *path*; a line torn by a crash means that its file is fetched again."""
    fetched = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            entry = Fetched(**json.loads(line))
        except (ValueError, TypeError):
            continue
        fetched[entry.path] = entry
    return fetched
