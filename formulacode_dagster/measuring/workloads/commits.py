"""Suites of other commits: benchmarks of a change are often written after it, and some were dropped before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from formulacode_dagster.building.suites.overlays import SuiteFiles, suite_at
from formulacode_dagster.building.suites.reading import BENCHMARK_NAME
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.sources.git.reader import CommitReader, HistoryReader

MOST_LATER = 3
"""Later suites that begin to speak of the change: each that is tried costs a survey of both sides."""
MOST_LATER_COMMITS = 300
MOST_EARLIER_COMMITS = 50
READ_AT_ONCE = 25
"""Commits whose suites are fetched together: the nearest one may do."""
_WORD = re.compile(rb"[A-Za-z_]\w+")


def later_suites(
    reader: CommitReader, pr: PullRequest, benchmark_dir: str, names: Collection[str]
) -> Iterator[SuiteFiles]:
    """Suites after the merge that begin to speak of one of *names*, the nearest first, MOST_LATER at most; the newest.

    *names* are those of the changed code, and of public names next to it. The newest suite comes last, if it has
    benchmarks that the merge lacks, since one may reach the change under other names.
    """
    folder = benchmark_dir.strip("/")
    commits = reader.later(pr.facts.merge_commit_sha, f"{folder}/**")
    before = _words(reader, pr.facts.merge_commit_sha, folder)
    wanted = {name.encode() for name in names} - before
    taken: list[str] = []
    for commit, words in _words_of_each(reader, commits[:MOST_LATER_COMMITS] if wanted else (), folder):
        if spoken := words & wanted:
            yield _suite(reader, commit, folder, Source.LATER_SUITE)
            taken.append(commit)
            wanted -= spoken
        if len(taken) == MOST_LATER or not wanted:
            break
    if commits and commits[-1] not in taken and _benchmarks(_words(reader, commits[-1], folder)) - before:
        yield _suite(reader, commits[-1], folder, Source.LATER_SUITE)


def earlier_suites(
    reader: HistoryReader, pr: PullRequest, benchmark_dir: str, names: Collection[str]
) -> Iterator[SuiteFiles]:
    """The nearest suite before the base that spoke of one of *names* of which the base's speaks no more, if any did."""
    folder = benchmark_dir.strip("/")
    base = pr.change.base_sha
    wanted = {name.encode() for name in names} - _words(reader, base, folder)
    # the first of them made the base's own
    commits = reader.earlier(base, f"{folder}/**", most=MOST_EARLIER_COMMITS)[1:] if wanted else ()
    nearest = next((commit for commit, words in _words_of_each(reader, commits, folder) if words & wanted), None)
    if nearest is not None:
        yield _suite(reader, nearest, folder, Source.EARLIER_SUITE)


def _suite(reader: CommitReader, commit: str, folder: str, source: Source) -> SuiteFiles:
    name = f"{'later' if source is Source.LATER_SUITE else 'earlier'} commit {commit[:12]}"
    return suite_at(reader, commit, folder, name=name, source=source)


def _benchmarks(words: Collection[bytes]) -> set[bytes]:
    return {word for word in words if BENCHMARK_NAME.match(word.decode())}


def _words_of_each(reader: CommitReader, commits: Sequence[str], folder: str) -> Iterator[tuple[str, set[bytes]]]:
    """Each of *commits* with every identifier in its benchmarks."""
    for start in range(0, len(commits), READ_AT_ONCE):
        some = commits[start : start + READ_AT_ONCE]
        reader.complete(*some, folder=folder)
        yield from ((commit, _words_at_hand(reader, commit, folder)) for commit in some)


def _words(reader: CommitReader, commit: str, folder: str) -> set[bytes]:
    reader.complete(commit, folder=folder)
    return _words_at_hand(reader, commit, folder)


def _words_at_hand(reader: CommitReader, commit: str, folder: str) -> set[bytes]:
    """Every identifier in the benchmarks of *commit*."""
    files = (reader.read(commit, path) for path in reader.list(commit, folder) if path.endswith(".py"))
    return {word for content in files if content is not None for word in _WORD.findall(content)}
