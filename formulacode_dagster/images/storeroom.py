"""The contract between housekeeping and whatever keeps images: a Docker daemon, or a folder of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .stock import Stock, StockedImage


@dataclass(frozen=True)
class TrimmedCache:
    """What was removed of a build cache, and what our records took that no image lies on, before and after."""

    records: int
    bytes_before: int
    bytes_after: int

    @property
    def freed(self) -> int:
        """Bytes."""
        return self.bytes_before - self.bytes_after


class Storeroom(Protocol):
    """What an engine keeps. All methods raise OutsideSystemError when it cannot be reached, or its disk is broken."""

    @property
    def where(self) -> str:
        """The daemon's address, or the folder."""

    def leftovers(self) -> tuple[str, ...]:
        """Names of the containers or folders that killed processes left."""

    def remove_leftovers(self) -> tuple[str, ...]:
        """Remove them; returns their names."""

    def stock(self) -> Stock:
        """The images that this installation has built, and what they share with others."""

    def discard(self, image: StockedImage) -> bool:
        """Remove an image of the stock; False when something uses it, or it is another one by now."""

    def trim_cache(self, budget: int | None, *, dry_run: bool) -> TrimmedCache | None:
        """Bring our part of the build cache down to *budget* bytes; None where there is no build cache."""
