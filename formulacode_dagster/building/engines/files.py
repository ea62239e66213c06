"""The files of a built image, as the host sees them: nothing of the image runs to list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO


class Area(StrEnum):
    """The part of an image a file belongs to."""

    ENVIRONMENT = "environment"
    """The virtual environment, with the package in it."""
    REPOSITORY = "repository"
    """The checkout, with its `.git`."""
    TOOLS = "tools"
    """The harness, the scripts and the build's input; not writable by the code."""
    SYSTEM = "system"
    """The operating system and the home folder; empty with the process engine."""


TESTS_FOLDER = "tests"
"""Among the tools: test requirements that are not in the lock."""

RECORD_HASHES = "task/record-hashes"
"""Among the tools: hashes of the RECORDs of the lock's distributions, as `sha256sum` writes them."""

CRATES_FOLDER = "crates/vendor"
"""Among the tools: the crates of a Cargo.lock, with Docker."""


@dataclass(frozen=True)
class ImageFile:
    """A regular file, or a link. `open` works until the next file is requested, any number of times."""

    area: Area
    path: str
    """Below the area's root, without a leading slash."""
    uid: int
    target: str | None
    """Target of a link; None for a regular file."""
    size: int
    """Bytes of its content."""
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True)
class ImageConfig:
    """Configuration of an image besides its files. A folder of the process engine has none."""

    variables: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    history: tuple[str, ...] = ()
    """The instructions it was built by, the newest first, and its commands."""

    @property
    def by_place(self) -> Mapping[str, str]:
        """Declared values by key."""
        return {
            **{f"the variable {name}": value for name, value in self.variables.items()},
            **{f"the label {name}": value for name, value in self.labels.items()},
            **{f"line {number} of the history": line for number, line in enumerate(self.history, 1)},
        }
