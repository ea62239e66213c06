"""Which version of the benchmarks a task is measured with."""

from __future__ import annotations

from formulacode_dagster.git.reader import CommitReader
from formulacode_dagster.models.pull_request import PullRequest


def suite_overlay(reader: CommitReader, pr: PullRequest, benchmark_dir: str) -> dict[str, bytes]:
    """The benchmark folder as of the merge commit, when the PR touches it; else nothing.

    Benchmarks that a PR adds for its own change exist on one side only; laid over both they can be compared.
    Paths are relative to the repository.
    """
    folder = benchmark_dir.strip("/")
    if not any(file.path.startswith(f"{folder}/") for file in pr.change.files):
        return {}
    commit = pr.facts.merge_commit_sha
    contents = ((path, reader.read(commit, path)) for path in reader.list(commit, folder))
    return {path: content for path, content in contents if content is not None}
