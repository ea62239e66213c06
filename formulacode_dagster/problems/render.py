"""The text a solver is given, from what was known before the merge."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest

from .anonymize import People
from .leak_guard import WITHHELD, Solution, without_references
from .markdown import tidy, without_boilerplate
from .solution import leaks

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = "problem_statement.md.j2"
TEMPLATE_VERSION = "1"
"""Raise it with any change of the template, or of what is kept out of the text."""


@dataclass(frozen=True)
class _Section:
    title: str
    body: str = ""


def render_problem_statement(pr: PullRequest, *, repository_description: str, patch: bytes) -> ProblemStatement:
    """The statement of *pr*: title, body and the issues it closes, people anonymized, *patch* kept out.

    Issues written after the merge are left out. What is left may be no more than a neutral title. Raises ItemFailure
    (`leak`) when the solution cannot be kept out.
    """
    issues = [issue for issue in pr.facts.linked_issues if issue.created_at < pr.facts.merged_at]
    cleaner = _Cleaner(pr, issues, patch)
    title = cleaner.title(pr.facts.title) or f"Improve the performance of {pr.facts.repository}"
    body = cleaner.body(pr.facts.body)
    sections = [_Section(cleaner.title(issue.title) or "Untitled", cleaner.body(issue.body)) for issue in issues]
    text = _template().render(
        title=title,
        repository=pr.facts.repository,
        description=cleaner.title(repository_description),
        body=body,
        issues=sections,
    )
    if leaked := leaks(text, patch):
        raise ItemFailure(
            "leak",
            f"{len(leaked)} lines of the solution of {pr.item} stay in its statement, whatever is withheld",
            why=f"the first is {leaked[0][:80]!r}",
            remedy="Look at the pull request's text; this is a gap in problems/leak_guard.py",
        )
    return ProblemStatement(
        month=pr.facts.month,
        repository_id=pr.facts.repository_id,
        number=pr.facts.number,
        text=text.strip() + "\n",
        issues=tuple(f"{issue.repository}#{issue.number}" for issue in issues),
        withheld_lines=cleaner.withheld,
        template_version=TEMPLATE_VERSION,
    )


class _Cleaner:
    """Cleans the texts of one pull request, with one set of placeholders for its people."""

    def __init__(self, pr: PullRequest, issues: Sequence[LinkedIssue], patch: bytes) -> None:
        self._pr = pr
        self._patch = patch
        self._solution = Solution(patch)
        self._people = People([pr.facts.author, *(issue.author for issue in issues)])
        self.withheld = 0

    def title(self, text: str) -> str:
        """One line, or nothing when all of it had to go."""
        line = " ".join(self.body(text.replace("<!--", "")).split())
        line = re.sub(r"[ \t]*\[link withheld\]$", "", line).lstrip("# ")
        return line if re.search(r"\w", re.sub(r"\[\w+ ?withheld\]", "", line.replace(WITHHELD, ""))) else ""

    def body(self, text: str) -> str:
        """Markdown, or nothing when all of it had to go."""
        guarded = self._solution.withhold(without_boilerplate(text))
        self.withheld += guarded.withheld
        facts = self._pr.facts
        plain = without_references(
            guarded.text,
            repository=facts.repository,
            number=facts.number,
            shas=(facts.merge_commit_sha, facts.head_sha),
        )
        return self._without_leaking_paragraphs(tidy(self._people.anonymize(plain)))

    def _without_leaking_paragraphs(self, text: str) -> str:
        """What an odd spelling hid from the guard, the independent search may still find: its paragraph goes then."""
        if not leaks(text, self._patch):
            return text
        paragraphs = re.split(r"(\n\s*\n)", text)
        for index, paragraph in enumerate(paragraphs):
            if leaks(paragraph, self._patch):
                paragraphs[index] = WITHHELD
                self.withheld += paragraph.count("\n") + 1
        rest = "".join(paragraphs)
        return WITHHELD if leaks(rest, self._patch) else rest


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # markdown for a solver, not HTML for a browser: escaping would alter code
    environment = Environment(  # noqa: S701
        loader=PackageLoader("formulacode_dagster.problems"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE)
