"""The folders that the process engine built: each is an image of its own, and shares no file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from formulacode_dagster.building.engines.folders import remove_tree
from formulacode_dagster.building.engines.image_store import Inventory, Layer, StoredImage, TrimmedCache
from formulacode_dagster.building.engines.scratch import abandoned_scratch
from formulacode_dagster.models.errors import OutsideSystemError

from .engine import ProcessEngine
from .layout import Layout, folder_lock, subfolders
from .tier_cache import TierCache


class ProcessImageStore:
    """Implements `ImageStore` with the folders of the engine whose root is *root*."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def where(self) -> str:
        """The folder."""
        return str(self._root)

    def leftovers(self, *, remove: bool) -> tuple[str, ...]:
        """Folders of sessions and builds, and scratch folders of this machine, whose process is gone."""
        folders = ProcessEngine(self._root).leftovers(remove=remove)
        scratch = abandoned_scratch()
        if remove:
            for folder in scratch:
                remove_tree(folder)
        return (*folders, *map(str, scratch))

    def inventory(self) -> Inventory:
        """The finished folders."""
        images = []
        for folder in subfolders(self._root / "images"):
            layout = Layout(folder)
            manifest = layout.read_manifest()
            if manifest is not None:
                made_at = datetime.fromtimestamp(layout.manifest.stat().st_mtime, tz=UTC)
                layers = (Layer(str(folder), manifest.size_bytes),)
                images.append(StoredImage(manifest.digest, (folder.name,), made_at, layers))
        return Inventory(tuple(images))

    def discard(self, image: StoredImage) -> bool:
        """Remove the folder of *image*, unless somebody builds or copies it just now."""
        folder = Path(image.layers[0].id)
        try:
            with folder_lock(self._root, folder.name, blocking=False):
                manifest = Layout(folder).read_manifest()
                if manifest is None or manifest.digest != image.digest:
                    return False
                remove_tree(folder)
        except Timeout:
            return False
        except OSError as error:
            raise OutsideSystemError("disk", f"cannot remove {folder}", why=str(error)) from error
        return True

    def trim_cache(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """The environments that builds share; uv's cache is the user's, not ours."""
        return TierCache(self._root).trim(budget, dry_run=dry_run)
