"""Which version of the benchmarks a task is measured with, and in which order versions are tried."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from formulacode_dagster.git.reader import CommitReader
from formulacode_dagster.models.pull_request import PullRequest

MOST_LATER = 2
"""Later suites that are tried: each costs a survey of both sides."""
MOST_COMMITS = 300
_WORD = re.compile(rb"[A-Za-z_]\w+")


@dataclass(frozen=True)
class SuiteFiles:
    """The benchmark folder as of one commit; None for the files that the checkout has anyway."""

    name: str
    files: Mapping[str, bytes] | None = None


BASE_SUITE = SuiteFiles("base")


def first_suite(reader: CommitReader, pr: PullRequest, benchmark_dir: str, *, suite_sha: str) -> SuiteFiles:
    """The suite of the base; that of the merge commit when the pull request touches it.

    Benchmarks that a pull request adds for its own change exist on one side only; laid over all sides they can be
    compared. *suite_sha* is the commit the environment was planned with, which is another where the base has no suite.
    """
    folder = benchmark_dir.strip("/")
    if any(file.path.startswith(f"{folder}/") for file in pr.change.files):
        return _suite("merge commit", reader, pr.facts.merge_commit_sha, folder)
    if suite_sha and suite_sha not in (pr.change.base_sha, pr.facts.merge_commit_sha):
        return _suite(_later_name(suite_sha), reader, suite_sha, folder)
    return BASE_SUITE


def later_suites(
    reader: CommitReader, pr: PullRequest, benchmark_dir: str, names: Collection[str]
) -> Iterator[SuiteFiles]:
    """Suites after the merge that begin to speak of one of *names*, the nearest first, MOST_LATER at most.

    *names* are those of what the patch changes, and of what is public beside it.
    """
    folder = benchmark_dir.strip("/")
    commits = reader.later(pr.facts.merge_commit_sha, f"{folder}/**")[:MOST_COMMITS]
    wanted = {name.encode() for name in names} - _words(reader, pr.facts.merge_commit_sha, folder)
    count = 0
    for commit in commits:
        spoken = _words(reader, commit, folder) & wanted
        if not spoken:
            continue
        yield _suite(_later_name(commit), reader, commit, folder)
        count += 1
        wanted -= spoken
        if count == MOST_LATER:
            return


def _later_name(commit: str) -> str:
    return f"later commit {commit[:12]}"


def _suite(name: str, reader: CommitReader, commit: str, folder: str) -> SuiteFiles:
    contents = ((path, reader.read(commit, path)) for path in reader.list(commit, folder))
    return SuiteFiles(name, {path: content for path, content in contents if content is not None})


def _words(reader: CommitReader, commit: str, folder: str) -> set[bytes]:
    """Every identifier in the benchmarks of *commit*."""
    files = (reader.read(commit, path) for path in reader.list(commit, folder) if path.endswith(".py"))
    return {word for content in files if content is not None for word in _WORD.findall(content)}
