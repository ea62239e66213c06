"""Bare mirrors of the repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.git.eviction import GIGABYTE
from formulacode_dagster.git.mirror import MirrorCache

from .settings import decimal_number


class MirrorsResource(dg.ConfigurableResource[Any]):
    """Hands out the mirror cache."""

    folder: str
    home: str
    clone_url: str
    gigabytes: str

    @property
    def root(self) -> Path:
        """The folder of the mirrors; it need not exist."""
        return Path(self.folder).expanduser() if self.folder else Path(self.home) / "mirrors"

    @property
    def budget(self) -> int | None:
        """Bytes that the mirrors may take, None when there is no limit; raises ConfigurationError."""
        return int(decimal_number("FC_MIRRORS_GB", self.gigabytes) * GIGABYTE) or None

    def cache(self) -> MirrorCache:
        """The cache; clones and fetches on demand, and tells the run's log what it removed to keep to the budget."""
        return MirrorCache(self.root, self.clone_url, budget=self.budget, say=dg.get_dagster_logger().info)
