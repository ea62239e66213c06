"""The page of one commit as Markdown: the commit, its pull request and its discussion, linked issues, its series.

All foreign text is quoted, so that none of it becomes a heading, a table or a link of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from formulacode_dagster.models.links import LinkWalk, ThreadComment
from formulacode_dagster.models.pull_request import ChangedFile

from .codecov import FileCoverage

BYTES_PER_TOKEN = 4
"""Characters per token of English and code, approximately; only a model's tokenizer is exact."""
MOST_ISSUES = 60
NO_FIGURE = "–"


@dataclass(frozen=True)
class AffectedSeries:
    """A series that took a step at the commit."""

    name: str
    environment: str
    unit: str
    before: float
    after: float
    ratio: float | None
    interval: tuple[float | None, float | None]
    direction: str
    plot: str
    """Path of its picture, from the page."""


@dataclass(frozen=True)
class CommitReport:
    """All that the page shows."""

    repository: str
    sha: str
    before_sha: str
    subject: str
    body: str
    author: str
    committed_at: datetime
    files: tuple[ChangedFile, ...]
    coverage: Mapping[str, FileCoverage] | None
    """By path; None if unknown."""
    pull_request: int | None
    walk: LinkWalk | None
    """GitHub's data on the pull request; None if it was not requested."""
    improved: int
    regressed: int
    series: tuple[AffectedSeries, ...]
    commits_between: int = 1
    notes: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines()).rstrip() + "\n"

    @property
    def tokens(self) -> int:
        """About how many tokens of a language model the page is."""
        return max(1, round(len(self.text.encode()) / BYTES_PER_TOKEN))

    def _lines(self) -> Iterator[str]:
        yield f"# {plain(self.subject) or self.sha[:10]}"
        yield ""
        yield f"- commit `{self.sha}` of {self.repository}"
        yield f"- by {plain(self.author)}, {self.committed_at:%Y-%m-%d %H:%M} UTC"
        if self.pull_request is not None:
            yield f"- pull request #{self.pull_request}"
        if self.before_sha:
            yield f"- measured before at `{self.before_sha}`, {self.commits_between} commits earlier"
        yield f"- {self.improved} benchmarks faster, {self.regressed} slower"
        yield from (f"- {note}" for note in self.notes)
        if self.body:
            yield from ("", *quoted(self.body))
        yield from ("", "## Files", "", "| file | added | deleted | lines run by tests |", "|---|--:|--:|--:|")
        for file in self.files:
            yield f"| `{cell(file.path)}` | {file.additions} | {file.deletions} | {self._covered(file.path)} |"
        if self.walk is not None:
            yield from self._discussion(self.walk)
        yield from ("", "## Series", "", "| benchmark | before | after | ratio | |", "|---|--:|--:|--:|---|")
        for each in self.series:
            low, high = (f"{end:.3g}" if end is not None else NO_FIGURE for end in each.interval)
            ratio = f"{each.ratio:.3g} ({low} to {high})" if each.ratio is not None else NO_FIGURE
            unit = cell(each.unit)
            yield (
                f"| {cell(each.name)}<br>{cell(each.environment)} | {each.before:.4g} {unit} | {each.after:.4g} {unit} "
                f"| {ratio} {each.direction} | ![]({each.plot}) |"
            )

    def _covered(self, path: str) -> str:
        told = (self.coverage or {}).get(path)
        share = told.share if told is not None else None
        return NO_FIGURE if told is None or share is None else f"{told.hits} of {told.lines}, {share:.0%}"

    def _discussion(self, walk: LinkWalk) -> Iterator[str]:
        yield from ("", f"## Pull request: {plain(walk.title)}", "", *quoted(walk.body or "(no text)"))
        if walk.later:
            yield from ("", "### Discussion")
            for comment in walk.later:
                yield from _comment(comment)
        issues = walk.links[:MOST_ISSUES]
        if issues:
            yield from ("", "## Linked issues")
        for issue in issues:
            yield from ("", f"### {issue.repository}#{issue.number}: {plain(issue.title)}", "", *quoted(issue.body))
            for comment in issue.comments:
                yield from _comment(comment)
        left_out = len(walk.links) - len(issues) + walk.left_out
        if left_out or walk.unreadable:
            yield from ("", f"{left_out} more are left out, {len(walk.unreadable)} could not be read.")


def plain(text: str) -> str:
    """One line of others' words in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>#|!&])", r"\\\1", " ".join(text.split()))


def cell(text: str) -> str:
    """Escape *text* for a table, where a pipe or a line end would end the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def quoted(text: str) -> Iterator[str]:
    """*text* as a block of quotation in which code is code and HTML is none."""
    for line in text.strip().splitlines():
        yield f"> {line.replace('<', '&lt;')}".rstrip()


def _comment(comment: ThreadComment) -> Iterator[str]:
    yield from ("", f"{plain(comment.author) or 'ghost'}, {comment.created_at:%Y-%m-%d}:", "", *quoted(comment.body))


def covered(files: Sequence[ChangedFile], coverage: Mapping[str, FileCoverage] | None) -> tuple[int, int]:
    """Lines run and lines of those of *files* that the report has; of the others nothing is known."""
    told = [coverage[file.path] for file in files if coverage and file.path in coverage]
    return sum(each.hits for each in told), sum(each.lines for each in told)
