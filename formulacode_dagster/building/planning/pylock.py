"""PEP 751's `pylock.toml` as uv writes it: taken apart, and freed of the index that it was resolved against."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from datetime import UTC, datetime
from urllib.parse import urlsplit

from formulacode_dagster.building.specs.wheels import file_name
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

PUBLIC_FILES = "files.pythonhosted.org"
"""Host of PyPI's files: the only host that a lock may name."""

_URL = re.compile(r'\burl = "(?P<url>[^"]*)"')
_LEFT_OUT = re.compile(r"^(index|marker) = .*\n", re.MULTILINE)
_BY_CONTENT = re.compile(r"/packages/(?P<place>[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60}/[^/]+)$")
_NO_PINS = ("archive", "directory", "vcs")


class LockedProject(Frozen):
    """One project of the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    wheels: tuple[str, ...]
    first_upload: datetime | None = None
    """Upload time of its first wheel, in UTC; None if the index does not report it."""

    @property
    def is_pure(self) -> bool:
        """Return True if every wheel of it fits any platform."""
        return all(name.endswith("-none-any.whl") for name in self.wheels)


def without_index(pylock: str) -> str:
    """Return *pylock* without traces of the index that answered.

    PyPI's URLs stay. Those of a mirror with PyPI's layout, in which a file's path is its own checksum, become PyPI's.
    Any other becomes a path next to the lock, as PEP 751 allows: hash and name then identify the file. Markers are
    removed, too: the lock is for one platform and one interpreter, where all of it is installed.
    """

    def public(match: re.Match[str]) -> str:
        parts = urlsplit(match["url"])
        by_content = _BY_CONTENT.search(parts.path)
        if by_content is not None:
            return f'url = "https://{PUBLIC_FILES}/packages/{by_content["place"]}"'
        if parts.hostname == PUBLIC_FILES:
            return f'url = "https://{PUBLIC_FILES}{parts.path}"'
        return f'path = "{parts.path.rpartition("/")[2]}"'

    return _URL.sub(public, _LEFT_OUT.sub("", pylock))


def read_pylock(pylock: str) -> tuple[LockedProject, ...]:
    """The projects of *pylock*, by name; raises ItemFailure (`lock`) for one that is no hashed pin."""
    projects = []
    for package in tomllib.loads(pylock).get("packages", []):
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        hashes = sorted({file.get("hashes", {}).get("sha256", "") for file in files})
        odd = [key for key in _NO_PINS if key in package]
        if odd or "version" not in package or not hashes or "" in hashes:
            what = f"the resolver's answer for {package.get('name')} is no hashed pin"
            raise ItemFailure(FailureKind.LOCK, what, why=", ".join(odd), remedy="Leave it out of the requirements")
        wheels = package.get("wheels", [])
        uploads = [file["upload-time"].astimezone(UTC) for file in wheels if "upload-time" in file]
        projects.append(
            LockedProject(
                name=package["name"],
                version=package["version"],
                hashes=tuple(hashes),
                wheels=tuple(file_name(wheel) for wheel in wheels),
                first_upload=min(uploads, default=None),
            )
        )
    return tuple(projects)


def requirements_of(pylock: str, *, without: Collection[str] = ()) -> str:
    """The pins of *pylock*, but for the projects *without*, as a requirements file with hashes, as uv writes them."""
    return "".join(
        f"{project.name}=={project.version}"
        + "".join(f" \\\n    --hash=sha256:{digest}" for digest in project.hashes)
        + "\n"
        for project in read_pylock(pylock)
        if project.name not in without
    )
