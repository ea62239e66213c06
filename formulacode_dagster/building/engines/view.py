"""The folders that untrusted code has, and the user that it runs as, see `confine`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

FOREIGN_USER = 61_000
"""User and group of untrusted code if root runs the platform; no distribution assigns this number."""
MEMORY_FILES = 2 * 1024**3
"""Bytes that files in /tmp and /dev/shm of a view may take."""
_OF_THE_SYSTEM = frozenset({Path("/"), Path("/usr")})


@dataclass(frozen=True)
class CommandView:
    """The files that a command has besides the system's programs and libraries, which it can only read."""

    writable: tuple[Path, ...]
    """They may be inside read-only ones."""
    readonly: tuple[Path, ...] = ()

    def describe(self, home: str, cores: int) -> dict[str, object]:
        """The view as `confine` reads it; *home* is the home folder of its user, *cores* what it counts."""
        user, group = untrusted_user()
        return {
            "user": user,
            "group": group,
            "home": home,
            "cores": cores,
            "memory_bytes": MEMORY_FILES,
            "readonly": [(str(path), str(path.resolve())) for path in self.readonly],
            "writable": [str(path) for path in self.writable],
        }


def untrusted_user() -> tuple[int, int]:
    """User and group that untrusted code runs as in a view: ours, or others if we are root."""
    return (FOREIGN_USER, FOREIGN_USER) if os.getuid() == 0 else (os.getuid(), os.getgid())


def hand_over(*roots: Path, protected: Collection[int] = ()) -> None:
    """Make the files below *roots* those of the user that untrusted code runs as, except *protected* inodes; only root
    needs to.
    """
    user, group = untrusted_user()
    if user == os.getuid():
        return
    for root in roots:
        for folder, folders, files in os.walk(root):
            for path in (folder, *(os.path.join(folder, name) for name in (*folders, *files))):  # noqa: PTH118 - many
                facts = os.lstat(path)
                if facts.st_uid != user and facts.st_ino not in protected:
                    os.chown(path, user, group, follow_symlinks=False)


def installation_of(interpreter: Path) -> tuple[Path, ...]:
    """The folder that an interpreter is installed in, with its library; none if the system's folders hold it.

    What only looks like an interpreter has none: code under build may have put it there.
    """
    prefix = interpreter.resolve().parents[1]
    is_one = any(prefix.glob("lib*/python3.*/os.py"))
    return (prefix,) if is_one and prefix not in _OF_THE_SYSTEM else ()


def existing(paths: Iterable[str]) -> tuple[Path, ...]:
    """Those of *paths* (or `file://` addresses) that are absolute and name something."""
    found = (Path(path.removeprefix("file://")) for path in paths)
    return tuple(path for path in found if path.is_absolute() and path.exists())
