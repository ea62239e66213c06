"""The commit whose benchmark suite a pull request is planned with: its base, its merge, or the nearest later one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formulacode_dagster.building.declarations.asv_config import AsvConfig, find_config, read_config
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import WORKLOADS_FOLDER
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.sources.git.asv_files import FILE_NAMES
from formulacode_dagster.sources.git.reader import CommitReader

from .missing_suite import sources_without_suite

MOST_LATER = 20
"""Later commits that are looked at: a configuration that twenty changes did not complete is not becoming a suite."""


@dataclass(frozen=True)
class Suite:
    """A suite with benchmarks: the commit it is read at, its configuration, and why no earlier one was taken.

    For a repository without a suite the configuration only says where to write workloads.
    """

    tree: Tree
    config: AsvConfig
    notes: tuple[str, ...]


def find_suite(reader: CommitReader, pr: PullRequest) -> Suite:
    """Return the suite of the base; without one, of the merge commit, then of the nearest later commit with one.

    A configuration that asv would refuse does not count. If no commit has a suite, but other sources of workloads, the
    base's is returned without any. Raises Rejection (`no_suite`) if there is nothing.
    """
    lacking: list[str] = []
    for name, commit in _commits(reader, pr.change.base_sha, pr.facts.merge_commit_sha):
        tree = Tree(reader, commit)
        config = config_of_suite(tree)
        if isinstance(config, AsvConfig):
            return Suite(tree, config, tuple(f"suite of the {name}: {reason}" for reason in lacking))
        lacking.append(f"{config} at the {name}")
    base = Tree(reader, pr.change.base_sha)
    others = sources_without_suite(base, pr)
    if not others:
        raise Rejection(RejectionReason.NO_SUITE, "; ".join(lacking[:3]))
    project = pr.facts.repository.partition("/")[2]
    config = AsvConfig(path="", project=project, benchmark_dir=WORKLOADS_FOLDER)
    return Suite(base, config, (*lacking[:3], f"without a suite, workloads are looked for in {', '.join(others)}"))


def config_of_suite(tree: Tree) -> AsvConfig | str:
    """Return the configuration of the suite in *tree*, or the reason why asv would find no benchmark."""
    path = find_config(tree)
    if path is None:
        return "no asv configuration"
    try:
        config = read_config(tree, path)
    except ItemFailure as failure:
        return str(failure)
    if any(file.endswith(".py") for file in tree.below(config.benchmark_dir)):
        return config
    return f"{config.benchmark_dir}, which {path} names, contains no benchmark"


def _commits(reader: CommitReader, base_sha: str, merge_sha: str) -> Iterator[tuple[str, str]]:
    yield "base", base_sha
    yield "merge commit", merge_sha
    # asked only when neither has a suite: it walks the history
    for commit in reader.later(merge_sha, *(f"**/{name}" for name in FILE_NAMES))[:MOST_LATER]:
        yield f"later commit {commit[:12]}", commit
