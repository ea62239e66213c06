"""The contract between housekeeping and a store of images: a Docker daemon, or a folder of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from formulacode_dagster.building.specs.spec import is_rebuild


@dataclass(frozen=True)
class Layer:
    """A piece of an image. Two images with a layer of one id share its bytes, and all that is below it."""

    id: str
    bytes: int


@dataclass(frozen=True)
class StoredImage:
    """An image of ours that an engine keeps. Without names it is dangling: a later build took them."""

    digest: str
    names: tuple[str, ...]
    made_at: datetime
    layers: tuple[Layer, ...]
    """From the lowest to the topmost; at least one."""

    @property
    def is_rebuild(self) -> bool:
        """True for a rebuild, which exists only until it is compared with the first."""
        return bool(self.names) and all(map(is_rebuild, self.names))

    def __str__(self) -> str:
        return self.names[0] if self.names else self.digest


@dataclass(frozen=True)
class Inventory:
    """Content of an engine's store: our images, and the layers that foreign images depend on."""

    images: tuple[StoredImage, ...]
    foreign_layers: frozenset[str] = frozenset()
    foreign_images: int = 0
    """Images of other installations of this platform; not ours to judge."""


@dataclass(frozen=True)
class TrimmedCache:
    """Removals from a build cache, and the size of our records without an image, before and after."""

    records: int
    bytes_before: int
    bytes_after: int

    @property
    def freed(self) -> int:
        """Bytes."""
        return self.bytes_before - self.bytes_after


class ImageStore(Protocol):
    """An engine's store. All methods raise OutsideSystemError when it cannot be reached, or its disk is broken."""

    @property
    def where(self) -> str:
        """The daemon's address, or the folder."""

    def leftovers(self, *, remove: bool) -> tuple[str, ...]:
        """Names of the containers or folders that killed processes left; with *remove*, they are gone."""

    def inventory(self) -> Inventory:
        """The images that this installation has built, and the layers they share with others."""

    def discard(self, image: StoredImage) -> bool:
        """Remove an image of the inventory; False when something uses it, or it is another one by now."""

    def trim_cache(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """Bring our part of the build cache down to *budget* bytes (None: no limit)."""
