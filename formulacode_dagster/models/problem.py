"""The text a solver is given."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .links import LinkWalk


class LeakKind(StrEnum):
    """Kind of a leak of the solution into a text."""

    LINE = "line"
    """A line that the patch adds."""
    RENAMED_LINE = "renamed_line"
    """Such a line with other names for its variables."""
    CODE = "code"
    """Eight consecutive tokens that the patch adds."""
    IDENTIFIER = "identifier"
    """A name that the patch brings in, and the base does not know."""
    TITLE = "title"
    """The pull request's own title."""
    PROSE = "prose"
    """Eight consecutive words of the pull request's body or commits that no earlier text has."""
    LATER_COMMENT = "later_comment"
    """Such a run of a comment that was written after the pull request was opened."""
    HASH = "hash"
    LINK = "link"
    """A link to a commit, comparison, pull request, fork, gist, file on a code host, or an unknown host."""
    LOCATION = "location"
    """A file with the number of a line that the patch changes."""
    RELEASE = "release"
    """A version that has the solution, as in `fixed in 2.1`."""
    ENCODED = "encoded"
    """Text within the text: base64, escapes, invisible characters, letters of other alphabets, read backwards."""
    PERSON = "person"
    """A login, name, address or page of somebody known."""
    MECHANISM = "mechanism"
    """The mechanism of the solution, in any wording: only a judge detects it."""
    INSTRUCTION = "instruction"
    """Words to whoever judges the text."""


class Leak(Frozen):
    """A place in a text that gives something of the solution away."""

    kind: LeakKind
    where: str = Field(description="`owner/repo#n` of the issue it stands in, or the variant")
    span: str = Field(description="what stands there, of what is looked for")


class Variant(StrEnum):
    """Variant of a statement: the name of its column."""

    FINAL = "final_md"
    MINIMAL = "statement_minimal"
    ISSUE = "statement_issue"
    HINTED = "statement_hinted"
    """Composed from measurements of the base, so a row has it only after the measurement."""


class BranchCommit(Frozen):
    """A commit of the pull request's own branch, or by which it landed."""

    sha: str
    message: str
    people: tuple[str, ...] = Field(default=(), description="names and addresses of author and committer")


class ProblemStatement(PullRequestRow):
    """The text a solver receives, and its origin."""

    statement_minimal: str = Field(description="markdown: which repository, and that it is to run faster")
    statement_issue: str | None = Field(
        default=None,
        description="markdown: the same, and the symptom as users reported it; null if no issue can be shown",
    )
    final_md: str = Field(description="the one used by tasks: `statement_issue` if present, else `statement_minimal`")
    issues: tuple[str, ...] = Field(default=(), description="`owner/repo#n` of the issues shown")
    left_out: tuple[Leak, ...] = Field(
        default=(), description="reasons for leaving out other issues: the solution parts they reveal"
    )
    names_at_base: tuple[str, ...] = Field(
        default=(), description="names that both an issue and the patch have, and the base knows as well: no leaks"
    )
    commits: tuple[BranchCommit, ...] = Field(
        default=(), description="the branch's, of which no text may hold hash, words or names"
    )
    writer: str = Field(default="", description="model that wrote `statement_issue`; empty: a template did")
    judges: tuple[str, ...] = Field(
        default=(), description="models that judged it in addition to the rules; empty: none"
    )
    walk: LinkWalk | None = Field(
        default=None, description="where the issues come from; None if only the stored closing issues were available"
    )
    template_version: str = Field(description="version of the template it was rendered by")
