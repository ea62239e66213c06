"""Commits of the default branch that merged pull requests, as far as the history shows.

Three kinds of marks occur on the default branch's first-parent line: `Merge pull request #N from …`, a trailing `(#N)`
of a squash, and merges whose second parent is the tip of `refs/pull/N/head`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.sources.git.log import Commit, Heads

_MERGE = re.compile(r"(?:[A-Z]+: )?Merge pull request #(\d+)(?: from (\S+))?")
_SQUASH = re.compile(r"\(#(\d+)\)$")


@dataclass(frozen=True, slots=True)
class Mark:
    """A commit of the default branch that merged pull request `number`; no title if its message has none."""

    number: int
    commit: Commit
    head_sha: str | None
    title: str
    body: str
    branch: str = ""
    """`owner/branch`, if the message has it."""


def is_made_by_web(commit: Commit) -> bool:
    """Return True if GitHub itself made *commit*, for a button: as `noreply@` its own host."""
    return commit.committer_email.startswith("noreply@")


def marks(line: Sequence[Commit], heads: Heads) -> dict[int, Mark]:
    """Every merged pull request that *line* (the first-parent line, newest first) shows, by number."""
    by_head = {sha: number for number, sha in heads.pulls.items()}
    by_number: dict[int, Mark] = {}
    doubtful: list[Mark] = []
    confirmed = 0
    for commit in line:
        for mark in _marks_of(commit, by_head, heads.pulls):
            if len(commit.parents) < 2 and mark.head_sha is None and not is_made_by_web(commit):
                doubtful.append(mark)
                continue
            confirmed += len(commit.parents) < 2 and mark.head_sha is not None
            _take(by_number, mark, heads.pulls)
    # if pull refs of squashed ones exist, a `(#N)` without one refers to an issue, or to another tracker
    if confirmed <= len(doubtful):
        for mark in doubtful:
            _take(by_number, mark, heads.pulls)
    return by_number


def _take(by_number: dict[int, Mark], mark: Mark, pulls: Mapping[int, str]) -> None:
    """Keep the oldest mark: later commits refer to a pull request. Only the merge itself has its head as a parent."""
    known, head = by_number.get(mark.number), pulls.get(mark.number)
    if known is None or head not in known.commit.parents or head in mark.commit.parents:
        by_number[mark.number] = mark


def _marks_of(commit: Commit, by_head: Mapping[str, int], pulls: Mapping[int, str]) -> Iterator[Mark]:
    subject = commit.subject
    merge, squash = _MERGE.match(subject), _SQUASH.search(subject)
    named = int(merge[1]) if merge else int(squash[1]) if squash else 0
    if merge:
        title, _, body = commit.body.partition("\n")
        title = title.strip() or (merge[2] or subject).rpartition("/")[2]
        head = commit.parents[1] if len(commit.parents) > 1 else pulls.get(named)
        yield Mark(named, commit, head, title, body.strip(), merge[2] or "")
    elif squash and named:
        title = subject[: squash.start()].strip() or subject
        head = commit.parents[1] if len(commit.parents) > 1 else pulls.get(named)
        yield Mark(named, commit, head, title, commit.body)
    for parent in commit.parents[1:]:
        number = by_head.get(parent)
        if number is not None and number != named:
            yield Mark(number, commit, parent, "", commit.body)
