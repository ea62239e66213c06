"""Pull requests that caused breakpoints."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.log import read_commits, read_heads
from formulacode_dagster.sources.offline.marks import marks


def pull_requests_of_mirror(mirror: Mirror) -> tuple[list[str], dict[str, int]]:
    """The default branch's first-parent line, oldest first, and which of its commits merged which pull request.

    Raises GitError.
    """
    heads = read_heads(mirror.path)
    line = read_commits(mirror.path, "--first-parent", revisions=[heads.tip])
    merged = {mark.commit.sha: number for number, mark in marks(line, heads).items()}
    return [commit.sha for commit in reversed(line)], merged


def with_pull_requests(commits: pl.DataFrame, line: list[str], merged: Mapping[str, int]) -> pl.DataFrame:
    """Return *commits* with `pull_request`, the only one in `before_hash..after_hash`; null if there are several.

    For a range outside *line*, the history of the default branch, it is the one that ends it.
    """
    places = {commit: place for place, commit in enumerate(line)}

    def brought(before: str | None, after: str | None) -> int | None:
        first, last = places.get(before or ""), places.get(after or "")
        if first is None or last is None or last <= first:
            return merged.get(after or "")
        numbers = {merged[commit] for commit in line[first + 1 : last + 1] if commit in merged}
        return numbers.pop() if len(numbers) == 1 else None

    numbers = [brought(before, after) for before, after in commits.select("before_hash", "after_hash").iter_rows()]
    return commits.with_columns(pl.Series("pull_request", numbers, pl.Int64))
