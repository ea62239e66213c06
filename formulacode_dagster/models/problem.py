"""The text a solver is given."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .links import LinkWalk


class LeakKind(StrEnum):
    """What of a solution stands in a text."""

    LINE = "line"
    """A line that the patch adds."""


class Leak(Frozen):
    """A place in a text that gives something of the solution away."""

    kind: LeakKind
    where: str = Field(description="`owner/repo#n` of the issue it stands in, or the variant")
    span: str = Field(description="what stands there, of what is looked for")


class ProblemStatement(PullRequestRow):
    """What a solver is given to read, and where it comes from."""

    statement_minimal: str = Field(description="markdown: which repository, and that it is to run faster")
    statement_issue: str | None = Field(
        default=None,
        description="markdown: the same, and the symptom as users reported it; null where no issue can be shown",
    )
    final_md: str = Field(
        description="the one tasks use: `statement_issue` where there is one, else `statement_minimal`"
    )
    issues: tuple[str, ...] = Field(default=(), description="`owner/repo#n` of the issues shown")
    left_out: tuple[Leak, ...] = Field(
        default=(), description="why other issues are not: what of the solution they tell"
    )
    walk: LinkWalk | None = Field(
        default=None, description="where the issues come from; None when only the stored closing issues were at hand"
    )
    template_version: str = Field(description="version of the template it was rendered by")
