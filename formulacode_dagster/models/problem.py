"""The text a solver is given."""

from __future__ import annotations

from pydantic import Field

from .base import Frozen
from .links import LinkWalk


class ProblemStatement(Frozen):
    """One row of `problem_statements`."""

    month: str
    repository_id: int
    number: int
    text: str = Field(description="markdown, people anonymized, lines of the solution withheld")
    issues: tuple[str, ...] = Field(default=(), description="`owner/repo#n` of the issues rendered")
    walk: LinkWalk | None = Field(
        default=None, description="where the issues come from; None when only the stored closing issues were at hand"
    )
    withheld_lines: int = Field(default=0, description="lines kept out because the patch holds them")
    template_version: str
