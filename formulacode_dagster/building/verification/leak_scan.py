"""Finds parts of the solution outside the checkout: objects of other repositories, releases of the package.

It uses paths, pack indexes, and the metadata of distributions: nothing is unpacked.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from formulacode_dagster.building.engines.files import Area, ImageFile

_LOOSE = re.compile(r"(?:^|/)objects/(?P<start>[0-9a-f]{2})/(?P<rest>[0-9a-f]{38})$")
_PACK = re.compile(r"\A(?P<stem>(?:.*/)?objects/pack/pack-[0-9a-f]{40})\.(?P<kind>idx|pack)\Z", re.DOTALL)
_INDEX_HEAD = b"\377tOc\0\0\0\2"
"""Pack index version 2, the only one that git has written since 2008: https://git-scm.com/docs/gitformat-pack."""
_FANOUT, _ID = 256 * 4, 20
INDEX_BYTES = 512 * 1024 * 1024
"""Limit of all indexes of an image in bytes, with which Linux's history fits in."""
_RELEASE = re.compile(
    r"(?:^|/)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*?)-(?P<version>\d[\w.!+]*?)"
    r"(?:\.dist-info|\.egg-info|\.egg|\.tar\.(?:gz|bz2|xz)|\.zip|(?:-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl"
    r"|-\w+_\d+(?:\.tar\.bz2|\.conda)?)(?=/|$)"
)
"""The last are conda's: name, version, build."""
_METADATA = re.compile(r"(?:^|/)(?:PKG-INFO|METADATA|[^/]+\.egg-info)$")
_HEADER = re.compile(r"^(Name|Version):[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_HEADER_BYTES = 4096
_CACHED = re.compile(
    r"/(?:wheels|sdists)-v\d+/(?:pypi|index/[^/]+)/(?P<name>[^/]+)/(?P<version>\d[^/-]*?)(?=-|/|\.\w+$|$)"
)
"""Names of uv's cache entries for an index."""


@dataclass
class Elsewhere:
    """The findings of the pass so far."""

    objects: dict[tuple[Area, str], bytes] = field(default_factory=dict)
    """Ids of objects by their file, 20 bytes each."""
    packs: dict[tuple[Area, str], set[str]] = field(default_factory=dict)
    """Existing parts of each pack, by its path without the extension."""
    releases: dict[tuple[str, str], tuple[Area, str]] = field(default_factory=dict)
    """The first place of each release, by canonical name and version."""
    _index_bytes: int = 0
    """Bytes of the indexes that were read."""

    def look(self, file: ImageFile) -> None:
        """Record the facts in the path of *file*, and read it if it is an index."""
        if "objects/" in file.path:
            self._note_objects(file)
        for pattern in (_RELEASE, _CACHED):
            if match := pattern.search(file.path):
                self._note_release(match["name"], match["version"], file)
        # the checkout's own metadata are of the base, whatever its files say
        if file.area is not Area.REPOSITORY and file.target is None and _METADATA.search(file.path):
            with file.open() as stream:
                headers = dict(_HEADER.findall(stream.read(_HEADER_BYTES).decode(errors="replace")))
            if headers.keys() == {"Name", "Version"}:
                self._note_release(headers["Name"], headers["Version"], file)

    def problems(self, solution: Mapping[str, str], local: Mapping[str, str]) -> Iterator[str]:
        """Return the findings that reveal the solution: *solution* are ids with their meaning, *local* the versions
        that the build installed, by canonical name.
        """
        for (area, path), ids in self.objects.items():
            for sha in sorted(sha for sha in solution if _contains(ids, bytes.fromhex(sha))):
                yield f"{area}: {path} holds {solution[sha]} as changed by the pull request"
        for (area, stem), kinds in self.packs.items():
            if kinds == {"pack"}:
                yield f"{area}: {stem}.pack has no index of its content"
        for (name, version), (area, path) in self.releases.items():
            if name in local and _is_newer(version, local[name]):
                yield f"{area}: {path} is {name} {version}, newer than the {local[name]} under test"

    def _note_release(self, name: str, version: str, file: ImageFile) -> None:
        self.releases.setdefault((canonicalize_name(name), version), (file.area, file.path))

    def _note_objects(self, file: ImageFile) -> None:
        if match := _LOOSE.search(file.path):
            self.objects[file.area, file.path] = bytes.fromhex(match["start"] + match["rest"])
        elif match := _PACK.search(file.path):
            self.packs.setdefault((file.area, match["stem"]), set()).add(match["kind"])
            if match["kind"] == "idx" and file.target is None:
                self._index_bytes += file.size
                ids = b""
                if self._index_bytes <= INDEX_BYTES:
                    with file.open() as stream:
                        ids = _ids_of_index(stream.read(file.size))
                self.objects[file.area, file.path] = ids
                if not ids:
                    self.packs[file.area, match["stem"]].discard("idx")


def versions_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Name and version, by canonical name."""
    return {canonicalize_name(name): version for name, version in pairs}


def _ids_of_index(content: bytes) -> bytes:
    """Return the ids of the objects in a pack, from its index; none if it cannot be read."""
    start = len(_INDEX_HEAD) + _FANOUT
    if not content.startswith(_INDEX_HEAD) or len(content) < start:
        return b""
    (count,) = struct.unpack(">I", content[start - 4 : start])
    return content[start : start + min(count, (len(content) - start) // _ID) * _ID]


def _contains(ids: bytes, sha: bytes) -> bool:
    at = ids.find(sha)
    while at % _ID and at > 0:
        at = ids.find(sha, at + 1)
    return at >= 0


def _is_newer(version: str, than: str) -> bool:
    try:
        return Version(version) > Version(than)
    except InvalidVersion:
        return version != than
