"""Keeps disk use within limits: removes containers of dead processes, unneeded images, and our build cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from formulacode_dagster.building.engines.image_store import ImageStore, TrimmedCache
from formulacode_dagster.models.image import ImageNeed
from formulacode_dagster.operating.store.database import Database

from .image_needs import image_needs
from .retention import Removal, plan_removals


@dataclass(frozen=True)
class Budgets:
    """Limit in bytes for images, and for the build cache, of one image store; None: no limit."""

    images: int | None
    build_cache: int | None


@dataclass(frozen=True)
class CleanupReport:
    """The content removed from one image store; with `dry_run`, the content that would be."""

    where: str
    dry_run: bool
    leftovers: tuple[str, ...]
    """Containers or folders of dead processes."""
    removed: tuple[Removal, ...]
    in_use: tuple[str, ...]
    """Images that were to go, and that something used."""
    images_kept: int
    image_bytes: int
    """Bytes that our images take now."""
    needed_bytes: int
    """Part of it that unfinished months need."""
    foreign_images: int
    cache: TrimmedCache

    @property
    def freed(self) -> int:
        """Bytes freed: no image of ours, and no record of the build cache, needs them any more."""
        return sum(removal.bytes for removal in self.removed) + self.cache.freed

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes of each thing that was removed; the build cache as one."""
        for name in self.leftovers:
            yield name, "left by a dead process", 0
        for removal in self.removed:
            yield str(removal.image), removal.reason.value, removal.bytes
        if self.cache.records:
            yield f"{self.cache.records} records of the build cache", "budget", self.cache.freed

    @property
    def summary(self) -> str:
        """One line for a person."""
        removed = "to remove" if self.dry_run else "removed"
        size, needed = self.image_bytes / 1e9, self.needed_bytes / 1e9
        parts = [
            f"{removed}: leftovers of dead processes {len(self.leftovers)}, images {len(self.removed)}",
            f"kept: images {self.images_kept}, {size:.2f} GB, of which unfinished months need {needed:.2f} GB",
        ]
        if self.in_use:
            parts.append(f"in use: images {len(self.in_use)}")
        cached = f"{self.cache.bytes_after / 1e9:.2f} GB"
        parts.append(f"build cache: {cached}, records {removed} {self.cache.records}")
        if self.foreign_images:
            parts.append(f"kept: images of other installations {self.foreign_images}")
        return f"{self.where}: {'; '.join(parts)}"

    def over(self, budgets: Budgets) -> int:
        """Bytes by which the images are still over their budget, because months need them, or something uses them."""
        return max(0, self.image_bytes - budgets.images) if budgets.images is not None else 0


def clean_up_all(
    database: Database, image_stores: Sequence[ImageStore], budgets: Budgets, *, dry_run: bool
) -> tuple[CleanupReport, ...]:
    """`clean_up` each of *image_stores*, with the needs that *database* reports just before."""
    done = []
    for image_store in image_stores:
        with database.transaction() as connection:
            needs = image_needs(connection)
        done.append(clean_up(image_store, needs, budgets, now=datetime.now(tz=UTC), dry_run=dry_run))
    return tuple(done)


def clean_up(
    image_store: ImageStore, needs: Mapping[str, ImageNeed], budgets: Budgets, *, now: datetime, dry_run: bool
) -> CleanupReport:
    """Remove what *image_store* need not keep, see `plan_removals`; *needs* are those of the database, by digest.

    The build cache comes last: the layers below a removed image then belong only to the cache, and count there. With
    *dry_run* nothing is removed. Raises OutsideSystemError when the daemon or the disk is gone; earlier removals stand.
    """
    leftovers = image_store.leftovers(remove=not dry_run)
    inventory = image_store.inventory()
    plan = plan_removals(inventory, needs, budget=budgets.images, now=now)
    removed = tuple(removal for removal in plan.removals if dry_run or image_store.discard(removal.image))
    return CleanupReport(
        where=image_store.where,
        dry_run=dry_run,
        leftovers=leftovers,
        removed=removed,
        in_use=tuple(str(removal.image) for removal in plan.removals if removal not in removed),
        images_kept=len(inventory.images) - len(removed),
        image_bytes=plan.bytes_before - sum(removal.bytes for removal in removed),
        needed_bytes=plan.needed_bytes,
        foreign_images=inventory.foreign_images,
        cache=image_store.trim_cache(budgets.build_cache, dry_run=dry_run),
    )
