"""Which names the base commit knows, read from its mirror: a name that an issue and a patch share may be an old one."""

from __future__ import annotations

from collections.abc import Collection

from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.models.pull_request import PullRequest


def names_at_base(mirrors: MirrorCache, pr: PullRequest, names: Collection[str]) -> frozenset[str]:
    """Those of *names* that stand in a file of the base commit of *pr*; raises as `MirrorCache.ensure` does."""
    with mirrors.ensure(pr.facts.repository, commits=(pr.change.base_sha,)) as mirror:
        return mirror.words_at(pr.change.base_sha, names)
