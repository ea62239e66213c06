"""The mirrors of a build's submodules."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.recipe import Submodule
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache


def submodule_mirrors(cache: MirrorCache, submodules: Sequence[Submodule]) -> dict[str, Mirror]:
    """Return complete mirrors for the commits of *submodules*, by repository; they stay while they are referenced.

    Raises as `MirrorCache.ensure`.
    """
    mirrors = {}
    for repository in sorted({module.repository for module in submodules}):
        commits = tuple(module.sha for module in submodules if module.repository == repository)
        mirrors[repository] = cache.ensure(repository, commits=commits)
        for commit in commits:
            mirrors[repository].complete(commit)
    return mirrors
