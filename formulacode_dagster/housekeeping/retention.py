"""Which images of ours go when they take too much of a disk: the least recently needed first. Nothing is removed here.

An image lies on layers, which it may share with others: what its removal frees is what nobody else lies on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from formulacode_dagster.engines.storeroom import Stock, StockedImage
from formulacode_dagster.models.image_need import ImageNeed

YOUNG = timedelta(hours=2)
"""An image younger than this may be one that is being built or verified just now."""
DANGLING = timedelta(days=1)
"""How long an image that lost its name, or was left by a rebuild, is kept."""


class Why(StrEnum):
    """Why an image goes."""

    DANGLING = "dangling"
    ASIDE = "left by a rebuild"
    BUDGET = "budget"


@dataclass(frozen=True)
class Removal:
    """An image that is to go. `bytes` is what nothing else lies on, once those before it in the plan are gone."""

    image: StockedImage
    why: Why
    bytes: int
    last_needed: datetime


@dataclass(frozen=True)
class RemovalPlan:
    """What is to go, in this order, and what our images take before and after."""

    removals: tuple[Removal, ...]
    bytes_before: int
    bytes_after: int
    needed_bytes: int
    """Of `bytes_after`, what unfinished months need. It stays, whatever the budget."""


def plan_removals(stock: Stock, needs: Mapping[str, ImageNeed], *, budget: int | None, now: datetime) -> RemovalPlan:
    """What of *stock* is to go so that it takes *budget* bytes at most (None: no limit); *needs* by digest.

    Dangling images, and second builds that nobody removed, go after a day, whatever the budget. Never planned: what an
    unfinished month needs, what is younger than two hours, and what another image that stays lies on.
    """
    house = _House(stock, needs)
    before = house.bytes
    removals = []
    for image in house.in_order():
        is_left = not image.names or image.is_aside
        if is_left and not house.is_needed(image) and now - image.made_at >= DANGLING:
            removals.append(house.remove(image, Why.ASIDE if image.is_aside else Why.DANGLING))
    for image in house.in_order():
        if budget is None or house.bytes <= budget:
            break
        if now - image.made_at >= YOUNG and house.may_leave(image):
            removals.append(house.remove(image, Why.BUDGET))
    needed = _bytes_of([image for image in house.kept if house.is_needed(image)], stock.foreign_layers)
    return RemovalPlan(tuple(removals), before, house.bytes, needed)


class _House:
    """The images that stay so far, and who lies on which layer."""

    def __init__(self, stock: Stock, needs: Mapping[str, ImageNeed]) -> None:
        self._needs = needs
        self._foreign = stock.foreign_layers
        self._users = Counter(layer.id for image in stock.images for layer in image.layers)
        self._tops = Counter(_top(image) for image in stock.images)
        self._last = self._last_needed(stock.images)
        self.kept: dict[StockedImage, None] = dict.fromkeys(stock.images)
        self.bytes = _bytes_of(stock.images, stock.foreign_layers)

    def in_order(self) -> list[StockedImage]:
        """What is kept: only copies of tasks last, else the least recently needed first, and what lies on top first."""
        return sorted(self.kept, key=lambda one: (self._only_copy(one), self._last[one], -len(one.layers), one.digest))

    def is_needed(self, image: StockedImage) -> bool:
        """Whether an unfinished month needs the very image."""
        need = self._needs.get(image.digest)
        return need is not None and need.unfinished

    def may_leave(self, image: StockedImage) -> bool:
        """Whether no unfinished month needs it, and nothing that stays lies on it."""
        return not self.is_needed(image) and self._users[_top(image)] == self._tops[_top(image)]

    def remove(self, image: StockedImage, why: Why) -> Removal:
        """Take *image* away, and say what that frees."""
        del self.kept[image]
        self._tops[_top(image)] -= 1
        freed = 0
        for layer in image.layers:
            self._users[layer.id] -= 1
            if self._users[layer.id] == 0 and layer.id not in self._foreign:
                freed += layer.bytes
        self.bytes -= freed
        return Removal(image, why, freed, self._last[image])

    def _only_copy(self, image: StockedImage) -> bool:
        need = self._needs.get(image.digest)
        return need is not None and need.only_copy

    def _last_needed(self, images: Sequence[StockedImage]) -> dict[StockedImage, datetime]:
        """When each was needed last: what lies on top of it needed it, too."""
        newest: dict[str, datetime] = {}
        for image in images:
            need = self._needs.get(image.digest)
            own = max(image.made_at, need.last) if need else image.made_at
            for layer in image.layers:
                newest[layer.id] = max(newest.get(layer.id, own), own)
        return {image: newest[_top(image)] for image in images}


def _top(image: StockedImage) -> str:
    return image.layers[-1].id


def _bytes_of(images: Sequence[StockedImage], foreign: frozenset[str]) -> int:
    layers = {layer.id: layer.bytes for image in images for layer in image.layers}
    return sum(size for name, size in layers.items() if name not in foreign)
