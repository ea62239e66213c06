"""Problem description from a pull request and its issues, for people: it contains the pull request's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.markdown import tidy, without_boilerplate

from .anonymize import People
from .leak_guard import WITHHELD, Solution, without_references
from .solution import leaks
from .statements import people_of
from .templates import render

TEMPLATE = "pull_request_text.md.j2"


@dataclass(frozen=True)
class _Section:
    title: str
    body: str = ""


def render_pull_request_text(
    facts: MergedPullRequest,
    *,
    patch: bytes,
    repository_description: str = "",
    walk: LinkWalk | None = None,
    issues: Sequence[LinkedIssue] | None = None,
    anonymize: bool = True,
) -> str:
    """Title, body and issues of a pull request as markdown, people anonymized, the lines of *patch* kept out.

    Not a task text: a pull request names its own mechanism, which no rule detects. Tasks use `statements`.

    *walk* gives title, body and issues as they stood at the merge; without it those of *facts* are used. *issues*
    override both. Those written after the merge are left out. Without *anonymize*, names of people stay. The result may
    be a neutral title only. Raises ItemFailure (`leak`) if the solution cannot be kept out.
    """
    if issues is None:
        issues = facts.linked_issues if walk is None else walk.links
    issues = [issue for issue in issues if issue.created_at < facts.merged_at]
    cleaner = _Cleaner(facts, issues, patch, anonymize=anonymize)
    title = cleaner.title(walk.title if walk else facts.title) or f"Improve the performance of {facts.repository}"
    body = cleaner.body(walk.body if walk else facts.body)
    sections = [_Section(cleaner.title(issue.title) or "Untitled", cleaner.body(issue.body)) for issue in issues]
    text = render(
        TEMPLATE,
        {
            "title": title,
            "repository": facts.repository,
            "description": cleaner.title(repository_description),
            "anonymized": anonymize,
            "body": body,
            "issues": sections,
        },
    )
    if leaked := leaks(text, patch):
        raise ItemFailure(
            FailureKind.LEAK,
            f"{len(leaked)} lines of the solution of {facts.item} remain in its text despite redaction",
            why=f"the first is {leaked[0][:80]!r}",
            remedy="Look at the pull request's text; this is a gap in problems/leak_guard.py",
        )
    return text


class _Cleaner:
    """Cleans the texts of one pull request, with one set of placeholders for its people."""

    def __init__(
        self, facts: MergedPullRequest, issues: Sequence[LinkedIssue], patch: bytes, *, anonymize: bool
    ) -> None:
        self._facts = facts
        self._patch = patch
        self._solution = Solution(patch)
        self._people = People(people_of(facts, issues)) if anonymize else None

    def title(self, text: str) -> str:
        """One line, or nothing when all of it had to go."""
        line = " ".join(self.body(text.replace("<!--", "")).split())
        line = re.sub(r"[ \t]*\[link withheld\]$", "", line).lstrip("# ")
        return line if re.search(r"\w", re.sub(r"\[\w+ ?withheld\]", "", line.replace(WITHHELD, ""))) else ""

    def body(self, text: str) -> str:
        """Markdown, or nothing when all of it had to go."""
        facts = self._facts
        plain = without_references(
            self._solution.withhold(without_boilerplate(text)),
            repository=facts.repository,
            number=facts.number,
            shas=(facts.merge_commit_sha, facts.head_sha),
        )
        if self._people is not None:
            plain = self._people.anonymize(plain)
        return self._without_leaking_paragraphs(tidy(plain))

    def _without_leaking_paragraphs(self, text: str) -> str:
        """The independent check may find oddly spelled text that the guard missed: its paragraph is then removed."""
        if not leaks(text, self._patch):
            return text
        paragraphs = re.split(r"(\n\s*\n)", text)
        for index, paragraph in enumerate(paragraphs):
            if leaks(paragraph, self._patch):
                paragraphs[index] = WITHHELD
        rest = "".join(paragraphs)
        return WITHHELD if leaks(rest, self._patch) else rest
