"""Suites that live in a repository of their own, for the one that their configuration names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from formulacode_dagster.building.declarations.asv_config import find_config, read_config
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.suites.overlays import SuiteFiles, is_whole_checkout, suite_at
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import TRANSIENT_KINDS
from formulacode_dagster.sources.git.log import read_heads
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

_ADDRESS = re.compile(r"(?:.*[/:])?(?P<name>[^/:]+/[^/]+?)(?:\.git)?/?", re.DOTALL)


def suites_elsewhere(
    cache: MirrorCache, candidates: Sequence[str], pr: PullRequest, benchmark_dir: str, note: Callable[[str], None]
) -> Iterator[SuiteFiles]:
    """Suites for the repository of *pr* in those of *candidates*: as each stood at the merge, then the newest.

    They replace *benchmark_dir*. *note* receives unreadable candidates.
    """
    for name in candidates_for(pr.facts.repository, candidates):
        try:
            with cache.ensure(name, since=pr.facts.merged_at) as mirror:
                suites = _suites(mirror, name, pr, benchmark_dir)
        except ItemFailure as failure:
            if failure.kind in TRANSIENT_KINDS:
                # it may be read the next time: nothing is decided without it
                raise
            note(f"the suite of {name} cannot be read: {failure}")
            continue
        yield from suites


def candidates_for(repository: str, candidates: Sequence[str]) -> list[str]:
    """Return those of *candidates* with the name of *repository* in theirs: only these are worth a clone."""
    short = repository.partition("/")[2].casefold()
    return [name for name in candidates if short in name.casefold() and name.casefold() != repository.casefold()]


def is_named(address: str, repository: str) -> bool:
    """Return True if *address*, from a suite's configuration, is that of *repository* on any host."""
    match = _ADDRESS.fullmatch(address.strip())
    return match is not None and match["name"].casefold() == repository.casefold()


def _suites(mirror: Mirror, name: str, pr: PullRequest, benchmark_dir: str) -> list[SuiteFiles]:
    tip = read_heads(mirror.path).tip
    suites = []
    for commit in dict.fromkeys((mirror.anchor(tip, pr.facts.merged_at), tip)):
        tree = Tree(mirror, commit)
        path = find_config(tree)
        config = read_config(tree, path) if path is not None else None
        if config is None or is_whole_checkout(config.benchmark_dir) or not is_named(config.repo, pr.facts.repository):
            continue
        folder, target = config.benchmark_dir.strip("/"), benchmark_dir.strip("/")
        suite = suite_at(mirror, commit, folder, name=f"{name} at {commit[:12]}", source=Source.OTHER_REPOSITORY)
        files = {target + file.removeprefix(folder): content for file, content in (suite.files or {}).items()}
        suites.append(replace(suite, files=files, repository=name))
    return suites
