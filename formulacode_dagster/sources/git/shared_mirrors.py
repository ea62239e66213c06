"""The mirrors of many pull requests: each opened once, prepared once, shared by the threads that read it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import TRANSIENT_KINDS, FailureKind

from .changes import prepare
from .damage import BROKEN_MARK
from .history import Mirror
from .landing import Merged, wanted_commits
from .mirror import MirrorCache

IDLE = 2
"""Number of mirrors that stay open without a reader: items come by repository, with few threads."""


@dataclass
class _Shared:
    """One repository; `opening` is held while its mirror is fetched, so that others wait."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    mirror: Mirror | None = None
    failure: ItemFailure | None = None
    readers: int = 0


class SharedMirrors:
    """Mirrors of *cache* with everything needed to read the changes of *pull_requests*, by repository.

    A repository costs one fetch of commits and one or two of contents, however many pull requests it has. A permanent
    failure on opening fails each of them without another try.
    """

    def __init__(self, cache: MirrorCache, pull_requests: Mapping[str, Sequence[Merged]]) -> None:
        self._cache = cache
        self._pull_requests = pull_requests
        self._lock = threading.Lock()
        self._shared: dict[str, _Shared] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for shared in self._shared.values():
            if shared.mirror is not None:
                shared.mirror.close()

    @contextmanager
    def mirror(self, repository: str) -> Iterator[Mirror]:
        """The mirror of *repository*, which stays for the length of the block. Raises as `MirrorCache.ensure` does."""
        with self._lock:
            shared = self._shared.setdefault(repository, _Shared())
            shared.readers += 1
        mirror: Mirror | None = None
        try:
            mirror = self._opened(repository, shared)
            yield mirror
        except ItemFailure as failure:
            broken = failure.kind == FailureKind.MIRROR_BROKEN
            if mirror is not None and (broken or (mirror.path / BROKEN_MARK).exists()):
                with shared.opening:
                    # the next reader has it rebuilt; current readers keep theirs
                    shared.mirror = None if shared.mirror is mirror else shared.mirror
            raise
        finally:
            with self._lock:
                shared.readers -= 1
                self._close_idle(repository)

    def _opened(self, repository: str, shared: _Shared) -> Mirror:
        with shared.opening:
            if shared.failure is not None:
                raise shared.failure.with_traceback(None)
            if shared.mirror is None:
                group = self._pull_requests.get(repository, ())
                try:
                    mirror = self._cache.ensure(repository, commits=wanted_commits(group))
                    prepare(mirror, group)
                except ItemFailure as failure:
                    shared.failure = None if failure.kind in TRANSIENT_KINDS else failure
                    raise
                shared.mirror = mirror
            return shared.mirror

    def _close_idle(self, repository: str) -> None:
        """Close mirrors that were not read lately; the newest readers are at the end."""
        self._shared[repository] = self._shared.pop(repository)
        idle = [shared for shared in self._shared.values() if not shared.readers and shared.mirror is not None]
        for shared in idle[:-IDLE]:
            if shared.mirror is not None:
                shared.mirror.close()
                shared.mirror = None
