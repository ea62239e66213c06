"""Proposes commits for labelling: a sample of those that maintainers marked by prefix, without those of the list.

python -m bench.labelling --repositories DIR

Prints lines in the form of the list, for a person to check and add: the label follows the prefix, so it is only a
proposal for MAINT, ENH and the like, where optimisations hide. Half of each such stratum mentions performance, so that
the list is hard. The sample follows the hashes: the same mirror gives the same one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.selection.classification.symbolic import POSITIVE
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.log import Commit, read_commits
from formulacode_dagster.sources.offline.mirrors import mirrors_in

from .labelled import Entry, Label, Source, Stratum, read_list, stratum_of, without_prefixes

MOST = {
    Stratum.PERF_TITLED: 36,
    Stratum.BENCH: 24,
    Stratum.MAINT: 4,
    Stratum.REFACTOR: 2,
    Stratum.BUG: 4,
    Stratum.ENH: 4,
    Stratum.REVERT: 2,
    Stratum.OPTIMIZE_MODULE: 10,
    Stratum.DOC: 2,
    Stratum.TEST: 2,
}
"""Commits of a stratum from one repository."""
LONGEST_PATCH = 400
"""Limit of a sampled commit in changed lines, so that a reader can check all of it."""
_FIGURE = re.compile(
    r"\d+(?:\.\d+)?\s*(?:ns|us|µs|μs|ms|s|sec|seconds?|minutes?|%|x|×|times|[KMG]i?B)(?!\w)", re.IGNORECASE
)
_OPTIMIZERS = (":(icase)*optimize*.py", ":(icase)*optimise*.py")


@dataclass(frozen=True)
class _Size:
    """Size of a commit's changes."""

    paths: tuple[str, ...]
    lines: int


def main() -> None:
    """Print the proposals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, required=True, help="folder of bare mirrors owner/name.git")
    listed = {entry.sha for entry in read_list()}
    for repository, path in mirrors_in(parser.parse_args().repositories).items():
        for entry in candidates(repository, path):
            if entry.sha not in listed:
                sys.stdout.write("\t".join(entry.model_dump(mode="json").values()) + "\n")


def candidates(repository: str, path: Path) -> Iterator[Entry]:
    """The sample of one mirror: in the order of hashes, which is by chance."""
    taken: Counter[tuple[Stratum, bool]] = Counter()
    commits = read_commits(path, "--no-merges", revisions=["HEAD"])
    arguments = ("log", "--format=%H", "--no-merges", "HEAD", "--", *_OPTIMIZERS)
    optimizers = set(git(path, *arguments, extra={"GIT_LITERAL_PATHSPECS": "0"}).decode().split())
    for commit in sorted(commits, key=lambda commit: commit.sha):
        stratum = stratum_of(commit.subject)
        if stratum is not Stratum.PERF_TITLED and commit.sha in optimizers:
            stratum = Stratum.OPTIMIZE_MODULE
        if stratum is None:
            continue
        is_marked = stratum is Stratum.PERF_TITLED
        speaks = not is_marked and POSITIVE.search(without_prefixes(commit.message)) is not None
        most = MOST[stratum] if is_marked else MOST[stratum] // 2
        if taken[stratum, speaks] >= most:
            continue
        size = _size(path, commit)
        if size is None or not _is_readable(size, stratum):
            continue
        taken[stratum, speaks] += 1
        if is_marked and _is_measured(commit, size):
            stratum = Stratum.PERF_MEASURED
        yield Entry(
            repository=repository,
            sha=commit.sha,
            stratum=stratum,
            label=Label.PERFORMANCE if is_marked else Label.OTHER,
            source=Source.PREFIX,
            reason=_reason(stratum),
        )


def _reason(stratum: Stratum) -> str:
    if stratum is Stratum.PERF_MEASURED:
        return "marked as performance by its maintainers, with a figure in the message"
    if stratum is Stratum.PERF_TITLED:
        return "marked as performance by its maintainers, without a figure"
    return f"marked as {stratum.value.replace('_', ' ')} by its maintainers"


def _is_readable(size: _Size, stratum: Stratum) -> bool:
    if size.lines > LONGEST_PATCH:
        return False
    return stratum in (Stratum.BENCH, Stratum.TEST) or any(kind_of(path) is PathKind.CORE for path in size.paths)


def _is_measured(commit: Commit, size: _Size) -> bool:
    is_benchmarked = any(kind_of(path) is PathKind.BENCHMARK for path in size.paths)
    return is_benchmarked or _FIGURE.search(commit.message) is not None


def _size(path: Path, commit: Commit) -> _Size | None:
    """None if a mirror lacks a content of the commit: some leave out large ones."""
    try:
        listed = git(path, "diff-tree", "--root", "-r", "--no-commit-id", "--no-renames", "--numstat", commit.sha)
    except GitError:
        return None
    rows = [line.split("\t", 2) for line in listed.decode("utf-8", "replace").splitlines()]
    return _Size(tuple(row[2] for row in rows), sum(int(count) for row in rows for count in row[:2] if count != "-"))


if __name__ == "__main__":
    main()
