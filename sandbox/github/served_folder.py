"""The folder of served repositories: their ids, names and content."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.offline.side_file import SIDE_FILE, RepositoryFacts, SideFile

from .changes import Size, sizes_of, span_of
from .node_ids import Kind, node_id, stable_id
from .threads import PullRequest
from .tracker import Tracker, read_tracker

FRESH_SECONDS = 1.0


@dataclass(eq=False)
class ServedRepository:
    """One repository of the folder."""

    name: str
    path: Path
    facts: RepositoryFacts
    id: int
    fresh_seconds: float = FRESH_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _tracker: Tracker | None = field(default=None, repr=False)
    _state: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    _looked: float = field(default=0.0, repr=False)
    _sizes: dict[int, Size] = field(default_factory=dict, repr=False)

    @property
    def node_id(self) -> str:
        """GraphQL's id."""
        return node_id(Kind.REPOSITORY, self.id)

    def tracker(self) -> Tracker:
        """Return its pull requests and issues, read again if a ref has moved."""
        with self._lock:
            now = time.monotonic()
            if self._tracker is None or now - self._looked > self.fresh_seconds:
                state = _refs_state(self.path)
                if self._tracker is None or state != self._state:
                    self._tracker = read_tracker(self.path, self.name, self.id, self.facts)
                    self._state = state
                    self._sizes = {}
                self._looked = time.monotonic()
            return self._tracker

    def size_kb(self) -> int:
        """Kilobytes of its git objects."""
        if self.facts.size_kb is not None:
            return self.facts.size_kb
        files = (Path(folder, name) for folder, _, names in os.walk(self.path / "objects") for name in names)
        return sum(file.stat().st_size for file in files if file.exists()) // 1024

    def size(self, pull_request: PullRequest, peers: Sequence[PullRequest] = ()) -> Size:
        """Return the size of *pull_request*; those of *peers* that are not known yet are measured with it."""
        with self._lock:
            if pull_request.number not in self._sizes:
                batch = {peer.number: peer for peer in (*peers, pull_request) if peer.number not in self._sizes}
                spans = [span_of(self.path, measured) for measured in batch.values()]
                self._sizes.update(zip(batch, sizes_of(self.path, spans), strict=True))
            return self._sizes[pull_request.number]


class ServedFolder:
    """All repositories of a folder, `owner/name.git`. Names are compared without case, as GitHub does.

    It is not looked at again for *fresh_seconds*.

    Raises ConfigurationError when the folder is none, or its side file malformed or at odds with it.
    """

    def __init__(self, folder: Path, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._folder = folder
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._state: tuple[tuple[str, int], ...] = ()
        self._looked = 0.0
        self._repositories: dict[str, ServedRepository] = {}
        self._former: dict[str, ServedRepository] = {}
        self._by_id: dict[int, ServedRepository] = {}
        self._refresh()

    def repositories(self) -> list[ServedRepository]:
        """Every repository, by name."""
        self._refresh()
        return list(self._repositories.values())

    def current(self, name: str) -> ServedRepository | None:
        """The repository that is called *name* today."""
        self._refresh()
        return self._repositories.get(name.lower())

    def former(self, name: str) -> ServedRepository | None:
        """The repository that was once called *name*, and is no longer."""
        self._refresh()
        return None if name.lower() in self._repositories else self._former.get(name.lower())

    def by_id(self, database_id: int) -> ServedRepository | None:
        """The repository with this database id."""
        self._refresh()
        return self._by_id.get(database_id)

    def _refresh(self) -> None:
        with self._lock:
            if self._looked and time.monotonic() - self._looked < self._fresh_seconds:
                return
            state = _folder_state(self._folder)
            if state != self._state or not self._looked:
                self._read()
                self._state = state
            self._looked = time.monotonic()

    def _read(self) -> None:
        if not self._folder.is_dir():
            raise ConfigurationError(f"{self._folder} is not a folder", remedy="Name one that holds owner/name.git")
        side = SideFile.read(self._folder)
        paths = {f"{path.parent.name}/{path.name.removesuffix('.git')}": path for path in self._folder.glob("*/*.git")}
        strangers = sorted(set(side.repositories) - set(paths))
        if strangers:
            raise ConfigurationError(
                f"{self._folder / SIDE_FILE} tells about {', '.join(strangers)}",
                why="there is no such repository in the folder",
                remedy="Add it as owner/name.git, or delete the entry",
            )
        repositories: dict[str, ServedRepository] = {}
        for name in sorted(paths, key=str.lower):
            facts = side.repositories.get(name, RepositoryFacts())
            known = self._repositories.get(name.lower())
            if known is not None and known.facts == facts and known.path == paths[name]:
                repositories[name.lower()] = known
                continue
            first = (facts.former_names or (name,))[0]
            id_ = facts.id or stable_id("repository", first.lower())
            repositories[name.lower()] = ServedRepository(name, paths[name], facts, id_, self._fresh_seconds)
        by_id = {served.id: served for served in repositories.values()}
        if len(by_id) < len(repositories):
            raise ConfigurationError(
                f"two repositories of {self._folder} have the same id", remedy="Change sandbox.json"
            )
        former = {old.lower(): served for served in repositories.values() for old in served.facts.former_names}
        self._repositories, self._by_id, self._former = repositories, by_id, former


def _folder_state(folder: Path) -> tuple[tuple[str, int], ...]:
    owners = [entry for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []
    state = [(entry.name, entry.stat().st_mtime_ns) for entry in owners]
    side = folder / SIDE_FILE
    return (*sorted(state), *([(SIDE_FILE, side.stat().st_mtime_ns)] if side.exists() else []))


def _refs_state(repository: Path) -> tuple[tuple[str, int], ...]:
    """Changes whenever a ref does: git replaces ref files, so that their folders' times change too."""
    paths = [repository / "HEAD", repository / "packed-refs"]
    state = [(str(path), path.stat().st_mtime_ns) for path in paths if path.exists()]
    for folder, _, _ in os.walk(repository / "refs"):
        state.append((folder, Path(folder).stat().st_mtime_ns))
    return tuple(sorted(state))
