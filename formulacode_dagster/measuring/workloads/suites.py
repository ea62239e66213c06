"""Suites that are tried in order if the first one is not relevant to a change."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from formulacode_dagster.building.suites.overlays import SuiteFiles, is_whole_checkout, suite_at, touches
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.sources.git.reader import CommitReader, HistoryReader

from .commits import earlier_suites, later_suites
from .missed import missed_callables, with_aliases
from .pytest_benchmark import pytest_benchmark_suites


def other_suites(
    reader: HistoryReader,
    pr: PullRequest,
    spec: BuildSpec,
    names: Collection[str],
    *,
    elsewhere: Iterable[SuiteFiles] = (),
) -> Iterator[SuiteFiles]:
    """Iterate over suites other than the first, for *names* of changed code, no two with the same files.

    First callables of the pull request that asv does not collect, then the base's own suite if the pull request changes
    it, then later commits, nearest first, then an earlier one, suites of other repositories for this one, then users of
    pytest-benchmark. Each is read on demand.
    """
    benchmark_dir = spec.benchmark_dir
    if is_whole_checkout(benchmark_dir):
        return
    sources = (
        missed_suites(reader, pr, benchmark_dir),
        base_suites(reader, pr, benchmark_dir),
        later_suites(reader, pr, benchmark_dir, names),
        earlier_suites(reader, pr, benchmark_dir, names),
        elsewhere,
        pytest_benchmark_suites(reader, pr, spec, names),
    )
    given: set[str] = set()
    for suite in itertools.chain.from_iterable(sources):
        if suite.sha256 not in given:
            given.add(suite.sha256)
            yield suite


def missed_suites(reader: CommitReader, pr: PullRequest, benchmark_dir: str) -> Iterator[SuiteFiles]:
    """The suite of the merge commit, with benchmarks of the pull request's own that asv would not collect, if any."""
    if not touches(pr, benchmark_dir.strip("/")):
        return
    merged = _suite_at_merge(reader, pr, benchmark_dir)
    files, before = merged.files or {}, _suite_at_base(reader, pr, benchmark_dir).files or {}
    if missed := missed_callables(files, before):
        adapted = tuple(f"{callable_.path}: {callable_.alias}" for callable_ in missed)
        name = f"{merged.name} with {len(missed)} that asv's rule of names leaves out"
        yield replace(merged, name=name, files=with_aliases(files, missed), adapted=adapted)


def base_suites(reader: CommitReader, pr: PullRequest, benchmark_dir: str) -> Iterator[SuiteFiles]:
    """Return the base's own suite if the pull request's replaced it: that may drop or rename what executes the change.

    None if the two have the same files, or the base has none.
    """
    if not touches(pr, benchmark_dir.strip("/")):
        return
    base = _suite_at_base(reader, pr, benchmark_dir)
    if base.files and base.files != _suite_at_merge(reader, pr, benchmark_dir).files:
        yield base


def _suite_at_merge(reader: CommitReader, pr: PullRequest, benchmark_dir: str) -> SuiteFiles:
    commit, folder = pr.facts.merge_commit_sha, benchmark_dir.strip("/")
    return suite_at(reader, commit, folder, name="merge commit", source=Source.MISSED_BY_RULE)


def _suite_at_base(reader: CommitReader, pr: PullRequest, benchmark_dir: str) -> SuiteFiles:
    commit, folder = pr.change.base_sha, benchmark_dir.strip("/")
    return suite_at(reader, commit, folder, name="base", source=Source.BASE_SUITE)
