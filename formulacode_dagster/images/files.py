"""The files of a built image, as the host sees them: nothing of the image runs to list them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import IO


class Area(StrEnum):
    """What part of an image a file belongs to."""

    ENVIRONMENT = "environment"
    """The virtual environment, with the package in it."""
    REPOSITORY = "repository"
    """The checkout, with its `.git`."""
    TOOLS = "tools"
    """The instrument, the scripts and what the build started from; not writable by the code."""
    SYSTEM = "system"
    """The operating system and the home folder; empty with the process engine."""


@dataclass(frozen=True)
class ImageFile:
    """A regular file, or a link. `open` works until the next file is asked for."""

    area: Area
    path: str
    """Below the area's root, without a leading slash."""
    mode: int
    uid: int
    target: str | None
    """Where a link points; None for a regular file."""
    open: Callable[[], IO[bytes]]
