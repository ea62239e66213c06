"""Which commit's benchmark suite a pull request is planned with: its base, its merge, or the nearest later one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formulacode_dagster.declarations.asv_config import FILE_NAMES, AsvConfig, find_config, read_config
from formulacode_dagster.declarations.tree import Tree
from formulacode_dagster.git.reader import CommitReader
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.reasons import RejectionReason

MOST_LATER = 20
"""Later commits that are looked at: a configuration that twenty changes did not complete is not becoming a suite."""


@dataclass(frozen=True)
class Suite:
    """A suite with benchmarks: the commit it is read at, its configuration, and why no earlier one was taken."""

    tree: Tree
    config: AsvConfig
    notes: tuple[str, ...]


def find_suite(reader: CommitReader, base_sha: str, merge_sha: str) -> Suite:
    """The suite of the base; where that has none, of the merge commit, then of the nearest later commit with one.

    Raises Rejection (`no_suite`) when no commit has one, ItemFailure (`asv_config`) when asv would refuse its file.
    """
    lacking: list[str] = []
    for name, commit in _commits(reader, base_sha, merge_sha):
        tree = Tree(reader, commit)
        path = find_config(tree)
        if path is None:
            lacking.append(f"no asv configuration at the {name}")
            continue
        config = read_config(tree, path)
        if any(file.endswith(".py") for file in tree.below(config.benchmark_dir)):
            return Suite(tree, config, tuple(f"suite of the {name}: {reason}" for reason in lacking))
        lacking.append(f"{config.benchmark_dir}, which {path} names, holds no benchmark at the {name}")
    raise Rejection(RejectionReason.NO_SUITE, "; ".join(lacking[:3]))


def _commits(reader: CommitReader, base_sha: str, merge_sha: str) -> Iterator[tuple[str, str]]:
    yield "base", base_sha
    yield "merge commit", merge_sha
    # asked only when neither has a suite: it walks the history
    for commit in reader.later(merge_sha, *(f"**/{name}" for name in FILE_NAMES))[:MOST_LATER]:
        yield f"later commit {commit[:12]}", commit
