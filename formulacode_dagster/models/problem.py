"""The text a solver is given."""

from __future__ import annotations

from pydantic import Field

from .base import PullRequestRow
from .links import LinkWalk


class ProblemStatement(PullRequestRow):
    """What a solver is given to read, and where it comes from."""

    text: str = Field(description="markdown, people anonymized, lines of the solution withheld")
    issues: tuple[str, ...] = Field(default=(), description="`owner/repo#n` of the issues rendered")
    walk: LinkWalk | None = Field(
        default=None, description="where the issues come from; None when only the stored closing issues were at hand"
    )
    withheld_lines: int = Field(default=0, description="lines kept out because the patch holds them")
    template_version: str = Field(description="version of the template it was rendered by")
