"""The suites that are tried, one after the other, where the first tells nothing about a change."""

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
    """Suites beside the first, for *names* of what the patch changes, no two of the same files.

    First what the pull request brought that asv does not collect, then the base's own where the pull request changes
    it, then later commits, nearest first, then an earlier one, those that other repositories have for this one, then
    what uses pytest-benchmark. Each is read when it is asked for: who finds enough workloads asks no more.
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
    """The base's own suite where the pull request's took its place: that may drop or rename what executes the change.

    None where the two have the same files, or the base has none.
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
