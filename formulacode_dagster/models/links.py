"""Issues and pull requests related to a pull request, found by following references."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .pull_request import LinkedIssue


class ThreadKind(StrEnum):
    """Kind of a thread that a number of a repository names."""

    ISSUE = "issue"
    PULL_REQUEST = "pull_request"


class ThreadComment(Frozen):
    """A comment as it stood then."""

    author: str
    body: str
    created_at: datetime


class Link(LinkedIssue):
    """A linked issue (or pull request) with its comments, and how far it is from the pull request."""

    kind: ThreadKind = ThreadKind.ISSUE
    distance: int = Field(default=1, description="references from the pull request to here")
    comments: tuple[ThreadComment, ...] = ()


class UnreadableLink(Frozen):
    """A reference that GitHub does not show us."""

    name: str = Field(description="`owner/repo#n`, as it was written")
    reason: str = Field(description="not_found, forbidden, private, overloaded, or GitHub's own word")


class LinkWalk(Frozen):
    """All that following the references of one pull request brought; issues as they stood before that was opened."""

    title: str = Field(default="", description="the pull request's own, as it was at the merge")
    body: str = Field(default="", description="the pull request's own, as it was at the merge")
    links: tuple[Link, ...] = Field(
        default=(), description="by distance, then in order of appearance, closed ones first"
    )
    later: tuple[ThreadComment, ...] = Field(
        default=(),
        description="comments on it, and comments on the links from when it was opened on, as far as they were read: "
        "they may reveal the solution",
    )
    unreadable: tuple[UnreadableLink, ...] = ()
    left_out: int = Field(default=0, description="references and links beyond the limit of one walk")
    partly_read: tuple[str, ...] = Field(default=(), description="threads of which GitHub showed not all, or too much")


class Discussion(PullRequestRow):
    """Issues, comments and references behind a performance pull request, as they stood before the merge."""

    walk: LinkWalk | None = Field(
        default=None, description="linked issues and comments; null if GitHub was not asked, offline or without a token"
    )
