"""Everything the writer of a problem statement may see: what was known before the pull request was opened.

Nothing here receives a pull request or a patch, so none of their text can come through.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.sources.markdown import tidy, without_boilerplate, without_sections

from .anonymize import People
from .trails import Trails

UNTITLED = "Untitled"
_PROPOSAL = re.compile(
    r"^#+\s+(?:(?:describe|what is)\s+)?(?:the\s+|your\s+|a\s+)?"
    r"(?:(?:proposed|possible|suggested|potential)\s+(?:fix|solution|change|implementation|approach|optimi[sz]ation|improvement)"
    r"|(?:proposal|suggestion|solution|fix|root cause|workaround|patch)\b(?!.*\?))",
    re.IGNORECASE,
)
"""Headings, such as templates of issues have, below which users say how to mend it."""


class EarlierIssue(Frozen):
    """An issue as it stood before the pull request was opened; people have placeholders."""

    name: str = Field(description="`owner/repo#n`")
    title: str
    body: str


class WriterView(Frozen):
    """All that a writer is shown."""

    repository: str = Field(description="`owner/repo`")
    description: str = Field(default="", description="the repository's own, one line")
    issues: tuple[EarlierIssue, ...] = ()

    def only(self, names: Collection[str]) -> WriterView:
        """The same with those of the issues that are called so."""
        return self.model_copy(update={"issues": tuple(issue for issue in self.issues if issue.name in names)})


def view_of(
    *,
    repository: str,
    number: int,
    opened_at: datetime,
    description: str,
    issues: Sequence[LinkedIssue],
    people: People,
) -> WriterView:
    """Return what may be shown for the pull request *number*, opened at *opened_at*: *issues* written before.

    They are taken as they are: whoever read them has read them as they stood then. Checklists, trailers, hashes of
    commits, links to code elsewhere and sections that propose a fix go, and so do the names of *people* and of whomever
    the texts mention.
    """
    trails = Trails(repository, number)

    def clean(text: str) -> str:
        return tidy(people.anonymize(trails.without(without_boilerplate(text))))

    def line(text: str) -> str:
        return re.sub(r"[ \t]*\[link withheld\]$", "", " ".join(clean(text.replace("<!--", "")).split())).lstrip("# ")

    return WriterView(
        repository=repository,
        description=line(description),
        issues=tuple(
            EarlierIssue(
                name=item_key(issue.repository, issue.number),
                title=line(issue.title) or UNTITLED,
                body=clean(without_sections(issue.body.replace("\r\n", "\n"), _PROPOSAL)),
            )
            for issue in issues
            if issue.created_at < opened_at
        ),
    )
