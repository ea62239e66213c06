"""Which images of ours go when they take too much of a disk: the least recently needed first. Nothing is removed here.

An image lies on layers, which it may share with others: what its removal frees is what nobody else lies on.
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
"""How long an image that lost its name, or was left by a rebuild, is kept."""


class RemovalReason(StrEnum):
    """Why an image is removed."""

    DANGLING = "dangling"
    REBUILD = "left by a rebuild"
    BUDGET = "budget"


@dataclass(frozen=True)
class Removal:
    """An image that is to go. `bytes` is what nothing else lies on, once those before it in the plan are gone."""

    image: StoredImage
    reason: RemovalReason
    bytes: int


@dataclass(frozen=True)
class RemovalPlan:
    """What is to go, in this order, and what our images take before and after."""

    removals: tuple[Removal, ...]
    bytes_before: int
    bytes_after: int
    needed_bytes: int
    """Of `bytes_after`, what unfinished months need. It stays, whatever the budget."""


def plan_removals(
    inventory: Inventory, needs: Mapping[str, ImageNeed], *, budget: int | None, now: datetime
) -> RemovalPlan:
    """What of *inventory* is to go so that it takes *budget* bytes at most (None: no limit); *needs* by digest.

    Dangling images, and rebuilds that nobody removed, go after a day, whatever the budget. Never planned: what an
    unfinished month needs, what is younger than two hours, and what another image that stays lies on.
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
    return RemovalPlan(tuple(removals), before, kept.bytes, needed)


class _KeptImages:
    """The images that stay so far, and who lies on which layer."""

    def __init__(self, inventory: Inventory, needs: Mapping[str, ImageNeed]) -> None:
        self._needs = needs
        self._foreign = inventory.foreign_layers
        self._users = Counter(layer.id for image in inventory.images for layer in image.layers)
        self._tops = Counter(_top(image) for image in inventory.images)
        self._last = self._last_needed(inventory.images)
        self.images: dict[StoredImage, None] = dict.fromkeys(inventory.images)
        self.bytes = _bytes_of(inventory.images, inventory.foreign_layers)

    def in_order(self) -> list[StoredImage]:
        """What is kept: only copies of tasks last, else the least recently needed first, and what lies on top first."""
        return sorted(
            self.images, key=lambda image: (self._only_copy(image), self._last[image], -len(image.layers), image.digest)
        )

    def is_needed(self, image: StoredImage) -> bool:
        """Whether an unfinished month needs the very image."""
        need = self._needs.get(image.digest)
        return need is not None and need.unfinished

    def may_leave(self, image: StoredImage) -> bool:
        """Whether no unfinished month needs it, and nothing that stays lies on it."""
        return not self.is_needed(image) and self._users[_top(image)] == self._tops[_top(image)]

    def remove(self, image: StoredImage, reason: RemovalReason) -> Removal:
        """Take *image* away, and say what that frees."""
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
        """When each was needed last: what lies on top of it needed it, too."""
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
