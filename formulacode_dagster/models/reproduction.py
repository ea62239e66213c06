"""Result of building an image again."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow


class DifferenceKind(StrEnum):
    """A difference between a second build and the first."""

    ADDED = "added"
    REMOVED = "removed"
    VERSION = "version"
    FILES = "files"
    TOOLCHAIN = "toolchain"
    """Build environment: OS image, Debian packages, compiler. It may explain a difference, and is none itself."""


class Difference(Frozen):
    """One difference, by name."""

    kind: DifferenceKind
    name: str = Field(description="the distribution; with `toolchain`, its part")
    detail: str


class Reproduction(PullRequestRow):
    """Result of building one image again."""

    item: str = Field(description="`owner/repo#number`")
    tag: str = Field(description="of the first image")
    digest: str = Field(description="of the first image")
    against: str = Field(description="`the image`, or `its stored record` where the image is gone")
    distributions: int = Field(description="installed distributions that were compared")
    files: int = Field(description="installed files that were compared")
    differences: tuple[Difference, ...] = Field(description="by name; of the toolchain, it is none by itself")
    seconds: float = Field(description="of the second build")

    @property
    def is_equal(self) -> bool:
        """True if every distribution has the same version, and every installed file the same content."""
        return all(difference.kind is DifferenceKind.TOOLCHAIN for difference in self.differences)
