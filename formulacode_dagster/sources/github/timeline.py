"""Events of an issue or pull request."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from formulacode_dagster.models.base import Frozen


class TimelineEvent(Frozen):
    """One entry of a timeline, oldest first. Fields that an event kind lacks are empty."""

    kind: str = Field(description="GitHub's word: commented, cross-referenced, renamed, closed, merged, labeled, …")
    created_at: datetime | None = Field(default=None, description="None for the few kinds that GitHub does not date")
    actor: str = ""
    body: str = Field(default="", description="current text of a comment or review")
    source: str = Field(default="", description="`owner/repo#n` that refers to this one")
    commit_sha: str = ""
    label: str = ""
    previous_title: str = ""
    title: str = Field(default="", description="the new one")
