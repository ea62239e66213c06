"""Bare mirrors of the repositories."""

from __future__ import annotations

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.git.eviction import mirror_path
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from formulacode_dagster.sources.offline.detect import detect

from .base import SettingsResource, setting
from .settings import Settings


class MirrorsResource(SettingsResource):
    """Hands out the mirror cache."""

    home: str | None = setting("home")
    mirrors_dir: str | None = setting("mirrors_dir")
    mirrors_gb: float | None = setting("mirrors_gb")
    github_clone_url: str | None = setting("github_clone_url")
    offline_source: str | None = setting("offline_source")
    suite_repositories: list[str] | None = setting("suite_repositories")

    @property
    def budget(self) -> int | None:
        """Limit of the mirrors in bytes, None without a limit."""
        return int(self.settings.mirrors_gb * 1e9) or None

    def cache(self) -> MirrorCache:
        """Return the cache; it clones and fetches on demand, and logs mirrors removed to keep to the budget."""
        root, origin = self.settings.mirrors_root, clone_url(self.settings)
        return MirrorCache(root, origin, budget=self.budget, say=dg.get_dagster_logger().info)

    def here(self, repository: str) -> Mirror | None:
        """Return the mirror of *repository* if there is one already: a lookup clones nothing."""
        if not repository or not mirror_path(self.settings.mirrors_root, repository).is_dir():
            return None
        return self.cache().ensure(repository)


def clone_url(settings: Settings) -> str:
    """The value of GITHUB_CLONE_URL; if it is not set and intake is from a folder of mirrors, that folder."""
    if settings.offline_source and "github_clone_url" not in settings.model_fields_set:
        try:
            mirrors = detect(settings.offline_source).mirrors
        except ConfigurationError:
            # said when intake needs it; mirrors that are here can be used all the same
            mirrors = None
        if mirrors is not None:
            return mirrors.as_uri()
    return settings.clone_url
