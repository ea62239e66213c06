"""The platform's part of a builder's cache: records of the steps of its Dockerfiles. Other users' builds share the
builder.

BuildKit does not record the owner of a cache entry, but its description names the step, and ours mention
/opt/formulacode. Layers below our images are not counted: they belong to the images, and removing the record would free
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, cast

from formulacode_dagster.building.engines.image_store import TrimmedCache

from .daemon import API_SECONDS
from .session import TOOLS

if TYPE_CHECKING:
    from docker import APIClient

MOUNT_AGE = timedelta(days=30)
"""A cache mount that was made earlier is removed within the budget too: BuildKit measures it once, and it grows."""
_MOUNT = "exec.cachemount"
_KINDS = frozenset({"regular", _MOUNT})


@dataclass(frozen=True)
class _Record:
    id: str
    parents: tuple[str, ...]
    bytes: int
    used_at: datetime
    mounted_at: datetime | None
    """When a cache mount was made; None for a step's result."""
    free: bool
    """No image depends on it, and no build uses it at the moment."""


class BuildCache:
    """The cache of the daemon's own builder."""

    def __init__(self, api: APIClient, *, mark: str = f"{TOOLS}/", mount_age: timedelta = MOUNT_AGE) -> None:
        """*mark* occurs in the steps of our Dockerfiles and in no others; cache mounts live for *mount_age*."""
        self._api = api
        self._mark = mark
        self._mount_age = mount_age

    def trim(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """Remove our records, those used least recently first, until they take *budget* bytes at most (None: no limit);
        before them, old cache mounts.

        A record is removed after those that build on it. With *dry_run* nothing is removed; bytes are what would be
        freed.
        """
        records = self._records()
        oldest = datetime.now(tz=UTC) - self._mount_age
        expired = [record for record in records if record.free and record.mounted_at and record.mounted_at < oldest]
        leaves = _Leaves(records, without=expired)
        before = left = sum(record.bytes for record in records if record.free)
        removed = 0

        def remove(record: _Record) -> None:
            nonlocal left, removed
            # what uses a record that cannot be removed uses those below it, too
            if dry_run or self._prune(record):
                left -= record.bytes
                removed += 1
                leaves.uncover(record)

        for record in expired:
            remove(record)
        while budget is not None and left > budget and (leaving := leaves.pop()):
            remove(leaving)
        return TrimmedCache(records=removed, bytes_before=before, bytes_after=left)

    def _records(self) -> list[_Record]:
        # docker-py's own df() cannot ask for less than every container and volume
        address = f"{self._api.base_url}/v{self._api.api_version}/system/df"
        asked = self._api.get(address, params={"type": "build-cache", "verbose": "1"}, timeout=API_SECONDS)
        asked.raise_for_status()
        answer: dict[str, Any] = asked.json()
        ours: dict[str, _Record] = {}
        # moved by version 1.52 of the API
        entries = answer.get("BuildCache") or (answer.get("BuildCacheUsage") or {}).get("Items") or ()
        for entry in sorted(entries, key=lambda entry: str(entry["CreatedAt"])):
            # Docker 26 writes the name with a blank
            parents = tuple(entry.get("Parents") or entry.get(" Parents") or ())
            described = entry["Type"] in _KINDS and self._mark in entry["Description"]
            # a step without a script, WORKDIR, say, leaves a record without bytes on top of ours
            empty = entry["Size"] == 0 and not ours.keys().isdisjoint(parents)
            if described or empty:
                ours[entry["ID"]] = _Record(
                    id=entry["ID"],
                    parents=parents,
                    bytes=entry["Size"],
                    used_at=datetime.fromisoformat(entry.get("LastUsedAt") or entry["CreatedAt"]),
                    mounted_at=datetime.fromisoformat(entry["CreatedAt"]) if entry["Type"] == _MOUNT else None,
                    free=not entry["InUse"] and not entry["Shared"],
                )
        return list(ours.values())

    def _prune(self, record: _Record) -> bool:
        only_this = cast("Any", {"id": record.id})  # types-docker knows two filters, the daemon more
        pruned = self._api.prune_builds(filters=only_this, all=True)
        return record.id in (pruned["CachesDeleted"] or ())


class _Leaves:
    """Free records on which no remaining record builds, those used least recently first."""

    def __init__(self, records: Sequence[_Record], *, without: Sequence[_Record]) -> None:
        """Those of *records* that are not *without*, which the caller removes."""
        skipped = {record.id for record in without}
        self._records = {record.id: record for record in records if record.free and record.id not in skipped}
        self._children = Counter(parent for record in records for parent in set(record.parents))
        self._heap = [(record.used_at, record.id) for record in self._records.values() if not self._children[record.id]]
        heapify(self._heap)

    def pop(self) -> _Record | None:
        """Take the next; None if there is none."""
        return self._records.pop(heappop(self._heap)[1]) if self._heap else None

    def uncover(self, removed: _Record) -> None:
        """Add the records that only *removed* was built on."""
        for parent in set(removed.parents):
            self._children[parent] -= 1
            if not self._children[parent] and parent in self._records:
                heappush(self._heap, (self._records[parent].used_at, parent))
