"""Files that appear whole or not at all, and an error a person understands when the disk is full."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formulacode_dagster.models.errors import OutsideSystemError

PARTIAL = ".partial-"
"""Prefix of unfinished files; a process with the folder's lock may delete them."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Convert a write failure to OutsideSystemError naming *what* was being written."""
    try:
        yield
    except OSError as error:
        raise disk_error(what, error) from error


def disk_error(what: str, error: OSError) -> OutsideSystemError:
    """Return the domain error for *error*, which happened while *what* was being written."""
    return OutsideSystemError(
        "disk",
        f"cannot write {what}",
        why=error.strerror or str(error),
        remedy="Free some space and run the month again; incomplete files were removed"
        if error.errno in _FULL
        else "Make the folder writable and run the month again",
    )


def private_folder(path: Path) -> Path:
    """Make *path*, a folder of ours by its name, and close it to other users of the machine; returns it.

    Raises OSError.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    # folders of earlier versions are open; one of another owner is that owner's business
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        path.chmod(0o700)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty file to write, which then replaces *path*; on failure, the old file stays.

    Makes the folder. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write *content* to *path*, durable across a power cut; otherwise as `replacing`. Raises OSError."""
    with replacing(path) as partial, partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames inside *folder* survive a power cut. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
