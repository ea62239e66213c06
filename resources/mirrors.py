"""Bare mirrors of the repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.git.mirror import MirrorCache


class MirrorsResource(dg.ConfigurableResource[Any]):
    """Hands out the mirror cache."""

    folder: str
    home: str
    clone_url: str

    def cache(self) -> MirrorCache:
        """The cache; clones and fetches on demand."""
        folder = Path(self.folder) if self.folder else Path(self.home) / "mirrors"
        return MirrorCache(folder, self.clone_url)
