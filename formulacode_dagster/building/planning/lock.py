"""Reading a lock: a requirements file in which every line is a pin or one of its hashes."""

from __future__ import annotations

import re
from hashlib import sha256

from packaging.utils import canonicalize_name

from formulacode_dagster.models.base import Frozen

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)$")
_HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")


class Pin(Frozen):
    """One project at one version, with the hashes its files may have."""

    name: str
    version: str
    hashes: int


class LockReading(Frozen):
    """The pins of a lock, and the lines that have no place in one."""

    pins: tuple[Pin, ...]
    strange: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """Version of each project, by normalised name."""
        return {canonicalize_name(pin.name): pin.version for pin in self.pins}


def digest(lock: str) -> str:
    """SHA-256 of the lock's text."""
    return sha256(lock.encode()).hexdigest()


def read_lock(lock: str) -> LockReading:
    """Take *lock* apart. Anything but `name==version` and sha256 hashes (URLs, paths, options) is strange."""
    pins: list[Pin] = []
    strange: list[str] = []
    for line in lock.replace("\\\n", " ").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        match = _PIN.match(words[0])
        bad = [word for word in words[1:] if not _HASH.match(word)]
        if match is None or bad:
            strange.append(" ".join(words)[:200])
        else:
            pins.append(Pin(name=match["name"], version=match["version"], hashes=len(words) - 1))
    return LockReading(pins=tuple(pins), strange=tuple(strange))
