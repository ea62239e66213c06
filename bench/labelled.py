"""The labelled commits: which they are, and each as the pull request the classifier would be asked about.

The list holds facts only: repository, commit, stratum, label, and a reason in our own words. Texts and patches are read
from mirrors on demand. Maintainers' prefixes, the source of most labels, are removed from prompts.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.sources.git.changes import change_of, prepare
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.log import Commit, from_epoch, read_commits
from formulacode_dagster.sources.offline.identity import derived_id

LIST = Path(__file__).with_name("labelled_commits.tsv")
HELD_OUT = frozenset(
    {"numpy/numpy", "pyproj4/pyproj", "scikit-hep/awkward", "scikit-hep/uproot5", "scverse/anndata", "tobymao/sqlglot"}
)
"""Repositories on which nothing is tuned: neither the prompt nor the filter."""


class Stratum(StrEnum):
    """Source of a commit. All but the first two are searched for negatives; some hide positives."""

    PERF_MEASURED = "perf_measured"
    """Prefix of performance, and the message gives a figure."""
    PERF_TITLED = "perf_titled"
    """Prefix of performance, no figure: the classifier may be right even if a measurement showed nothing."""
    BENCH = "bench"
    MAINT = "maint"
    REFACTOR = "refactor"
    BUG = "bug"
    ENH = "enh"
    REVERT = "revert"
    OPTIMIZE_MODULE = "optimize_module"
    """Touches a file or folder called optimize or optimizer, under another prefix than that of performance."""
    DOC = "doc"
    TEST = "test"


class Label(StrEnum):
    """Label of a commit."""

    PERFORMANCE = "performance"
    OTHER = "other"


class Source(StrEnum):
    """Origin of the label."""

    PREFIX = "prefix"
    """The maintainers' own prefix."""
    READ = "read"
    """A person, or a model in place of one, read message and diff."""


class Entry(Frozen):
    """One line of the list."""

    repository: str
    sha: str
    stratum: Stratum
    label: Label
    source: Source
    reason: str

    @property
    def held_out(self) -> bool:
        """True if nothing may be tuned on it."""
        return self.repository in HELD_OUT


@dataclass(frozen=True)
class Example:
    """A line of the list with its mirror's data, prefixes removed."""

    entry: Entry
    pr: PullRequest
    patch: bytes


PREFIXES: Mapping[str, Stratum] = {
    **dict.fromkeys(("perf", "opt", "eff"), Stratum.PERF_TITLED),
    **dict.fromkeys(("bench", "bm"), Stratum.BENCH),
    **dict.fromkeys(("maint", "mnt", "chore", "cln"), Stratum.MAINT),
    **dict.fromkeys(("ref", "rf", "refactor"), Stratum.REFACTOR),
    **dict.fromkeys(("bug", "fix", "bf"), Stratum.BUG),
    **dict.fromkeys(("enh", "feat", "nf"), Stratum.ENH),
    **dict.fromkeys(("rev", "revert"), Stratum.REVERT),
    **dict.fromkeys(("doc", "docs"), Stratum.DOC),
    **dict.fromkeys(("tst", "test", "tests"), Stratum.TEST),
}
_OTHERS = "api|bld|build|ci|dep|dev|pin|rel|rls|sec|simd|sty|style|typ|typing|wip|tests?|ann|mrg"
_PREFIX = re.compile(
    rf"^([\s*\-]*)\[?({'|'.join(PREFIXES)}|{_OTHERS})\b(?:\([^)\n]*\))?\]?!?\s*(?:[:,/|&+]\s*|(?<=\])\s*)",
    re.IGNORECASE | re.MULTILINE,
)
_REVERT = re.compile(r'^revert\s+["“\']', re.IGNORECASE)
_NUMBER = re.compile(r"\s*\(#(\d+)\)\s*$")


def stratum_of(subject: str) -> Stratum | None:
    """Return the label for the prefix of a commit's *subject*; None without a known one."""
    if _REVERT.match(subject):
        return Stratum.REVERT
    match = _PREFIX.match(subject)
    return PREFIXES.get(match[2].lower()) if match else None


def without_prefixes(text: str) -> str:
    """Return *text* without maintainers' prefixes at the beginnings of its lines, any number of them."""
    while (shorter := _PREFIX.sub(r"\1", text)) != text:
        text = shorter
    return text


def read_list(path: Path = LIST) -> list[Entry]:
    """Return the lines of the list; raises ConfigurationError for duplicates."""
    with path.open(encoding="utf-8", newline="") as file:
        entries = [Entry.model_validate(row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    twice = {entry.sha for entry in entries if sum(other.sha == entry.sha for other in entries) > 1}
    if twice:
        raise ConfigurationError(f"{path} has {', '.join(sorted(twice))} twice", remedy="Keep one line of each")
    return entries


def read_examples(entries: Iterable[Entry], mirror_of: Callable[[str], Mirror]) -> Iterator[Example]:
    """*entries* with message and patch, each repository from the mirror that *mirror_of* gives.

    Raises as `change_of`, and ConfigurationError if a mirror lacks a commit.
    """
    by_repository: dict[str, list[Entry]] = {}
    for entry in entries:
        by_repository.setdefault(entry.repository, []).append(entry)
    for repository, own in by_repository.items():
        with mirror_of(repository) as mirror:
            if missing := [entry.sha for entry in own if not mirror.has(entry.sha)]:
                raise ConfigurationError(
                    f"the mirror of {repository} lacks {len(missing)} of the commits, {missing[0]} among them",
                    remedy="Fetch its whole history",
                )
            read = read_commits(mirror.path, "--no-walk", revisions=[entry.sha for entry in own])
            commits = {commit.sha: commit for commit in read}
            facts = {entry.sha: facts_of(repository, commits[entry.sha]) for entry in own}
            prepare(mirror, list(facts.values()))
            for entry in own:
                change, patch = change_of(mirror, facts[entry.sha])
                yield Example(entry, PullRequest(facts=facts[entry.sha], change=change), patch)


def facts_of(repository: str, commit: Commit) -> MergedPullRequest:
    """*commit* as a pull request of its own, with its message as text."""
    title, body = without_prefixes(commit.subject), without_prefixes(commit.body)
    number = _NUMBER.search(title)
    merged_at = from_epoch(commit.committed)
    return MergedPullRequest(
        month=Month.of(merged_at).key,
        repository_id=derived_id(repository),
        repository=repository,
        number=int(number[1]) if number else 1,
        title=_NUMBER.sub("", title),
        body=body,
        created_at=from_epoch(min(commit.authored, commit.committed)),
        merged_at=merged_at,
        base_ref="main",
        head_sha="",
        merge_commit_sha=commit.sha,
        commit_count=1,
    )
