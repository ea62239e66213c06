"""One try at building and verifying a task's image."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import PullRequestRow
from .image import BuildSpec


class BuildAttempt(PullRequestRow):
    """One try at an image; nothing of it is thrown away."""

    attempt: int = Field(description="1 for the first ever made of this task; never reused")
    run_id: str
    engine: str
    started_at: datetime
    seconds: float
    spec: BuildSpec
    stage: str = Field(description="`plan`, tier that failed (`base`, `repo`, `env`, `task`), verification, or `done`")
    rc: int | None = Field(default=None, description="exit code of the step that ended it; None when it was killed")
    kind: str = Field(default="", description="kind of the failure, `` when it held")
    detail: str = ""
    rule: str = Field(default="", description="repair rule whose fix this attempt was the first to have")
    log: str = Field(default="", repr=False, description="the whole log; kept compressed, by hash")
