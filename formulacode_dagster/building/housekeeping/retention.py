"""Chooses our images to remove when they exceed their share of a disk: the least recently needed first. Removes
nothing.

Images share layers: a removal frees only the layers that no other image uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from formulacode_dagster.building.engines.image_store import Inventory, StoredImage
from formulacode_dagster.models.image import ImageNeed

YOUNG = timedelta(hours=2)
"""An image younger than this may be at work just now: one that was built, or that a build has found."""
DANGLING = timedelta(days=1)
"""Lifetime of an image that lost its name, or of a leftover rebuild."""


class RemovalReason(StrEnum):
    """Why an image is removed."""

    DANGLING = "dangling"
    REBUILD = "left by a rebuild"
    BUDGET = "budget"


@dataclass(frozen=True)
class Removal:
    """An image to remove. `bytes` is what only it uses, once those before it in the plan are gone."""

    image: StoredImage
    reason: RemovalReason
    bytes: int


@dataclass(frozen=True)
class RemovalPlan:
    """Removals, in this order, and the size of our images before and after."""

    removals: tuple[Removal, ...]
    bytes_before: int
    needed_bytes: int
    """Bytes that unfinished months need. They stay, whatever the budget."""


def plan_removals(
    inventory: Inventory, needs: Mapping[str, ImageNeed], *, budget: int | None, now: datetime
) -> RemovalPlan:
    """Return the removals from *inventory* that bring it to *budget* bytes (None: no limit); *needs* by digest.

    Dangling images, and leftover rebuilds, go after a day, whatever the budget. Never planned: an image that an
    unfinished month needs, that is younger than two hours, or that a remaining image depends on.
    """
    kept = _KeptImages(inventory, needs)
    before = kept.bytes
    removals = []
    for image in kept.in_order():
        is_left = not image.names or image.is_rebuild
        if is_left and not kept.is_needed(image) and now - image.made_at >= DANGLING:
            removals.append(kept.remove(image, RemovalReason.REBUILD if image.is_rebuild else RemovalReason.DANGLING))
    for image in kept.in_order():
        if budget is None or kept.bytes <= budget:
            break
        if now - image.made_at >= YOUNG and kept.may_leave(image):
            removals.append(kept.remove(image, RemovalReason.BUDGET))
    needed = _bytes_of([image for image in kept.images if kept.is_needed(image)], inventory.foreign_layers)
    return RemovalPlan(tuple(removals), before, needed)


class _KeptImages:
    """The remaining images, and the users of each layer."""

    def __init__(self, inventory: Inventory, needs: Mapping[str, ImageNeed]) -> None:
        self._needs = needs
        self._foreign = inventory.foreign_layers
        self._users = Counter(layer.id for image in inventory.images for layer in image.layers)
        self._tops = Counter(_top(image) for image in inventory.images)
        self._last = self._last_needed(inventory.images)
        self.images: dict[StoredImage, None] = dict.fromkeys(inventory.images)
        self.bytes = _bytes_of(inventory.images, inventory.foreign_layers)

    def in_order(self) -> list[StoredImage]:
        """Order of removal: sole copies of tasks last, else least recently needed first, and topmost images first."""
        return sorted(
            self.images, key=lambda image: (self._only_copy(image), self._last[image], -len(image.layers), image.digest)
        )

    def is_needed(self, image: StoredImage) -> bool:
        """Return True if an unfinished month needs exactly this image."""
        need = self._needs.get(image.digest)
        return need is not None and need.unfinished

    def may_leave(self, image: StoredImage) -> bool:
        """Return True if no unfinished month needs it, and no remaining image depends on it."""
        return not self.is_needed(image) and self._users[_top(image)] == self._tops[_top(image)]

    def remove(self, image: StoredImage, reason: RemovalReason) -> Removal:
        """Remove *image* from the plan, and return the bytes it frees."""
        del self.images[image]
        self._tops[_top(image)] -= 1
        freed = 0
        for layer in image.layers:
            self._users[layer.id] -= 1
            if self._users[layer.id] == 0 and layer.id not in self._foreign:
                freed += layer.bytes
        self.bytes -= freed
        return Removal(image, reason, freed)

    def _only_copy(self, image: StoredImage) -> bool:
        need = self._needs.get(image.digest)
        return need is not None and need.only_copy

    def _last_needed(self, images: Sequence[StoredImage]) -> dict[StoredImage, datetime]:
        """Return when each was last needed: images on top of it needed it, too."""
        newest: dict[str, datetime] = {}
        for image in images:
            need = self._needs.get(image.digest)
            own = max(image.made_at, need.last) if need else image.made_at
            for layer in image.layers:
                newest[layer.id] = max(newest.get(layer.id, own), own)
        return {image: newest[_top(image)] for image in images}


def _top(image: StoredImage) -> str:
    return image.layers[-1].id


def _bytes_of(images: Sequence[StoredImage], foreign: frozenset[str]) -> int:
    layers = {layer.id: layer.bytes for image in images for layer in image.layers}
    return sum(size for name, size in layers.items() if name not in foreign)
