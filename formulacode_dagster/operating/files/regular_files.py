"""Files of folders that others write: links are not followed, and no file is read beyond a limit."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG

from formulacode_dagster.models.errors import ConfigurationError


def is_regular_file(path: Path) -> bool:
    """Return True for a file that is no link."""
    try:
        return S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def leads_out(path: Path, folder: Path) -> bool:
    """Return True if links take *path*, of *folder*, out of it."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def read_regular_file(path: Path, most_bytes: int) -> bytes:
    """Return the content of *path*; raises ConfigurationError if it is a link, unreadable, or larger than that."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read", why=error.strerror or str(error)) from error
    if len(content) > most_bytes:
        raise ConfigurationError(f"{path} is larger than {most_bytes >> 20} MiB")
    return content
