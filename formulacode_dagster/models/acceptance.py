"""A month that a person took as it is, although a stage failed more of it than its budget allows."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Frozen
from .items import Stage


class Acceptance(Frozen):
    """Who accepted a stage's failures, why, and how many; further failures are not covered."""

    month: str
    stage: Stage
    accepted_at: datetime
    accepted_by: str = Field(min_length=1, description="name of the person")
    reason: str = Field(min_length=1)
    summary: str = Field(description="finding of the check")
    failed: int = Field(ge=0, description="items that had failed")
    done: int = Field(ge=0, description="items that were done")

    @property
    def card_line(self) -> str:
        """Return a line for readers of the dataset's card."""
        day = f"{self.accepted_at:%Y-%m-%d}"
        return f"{self.stage}: {self.summary}; accepted by {self.accepted_by} on {day}: {self.reason}"

    def covers(self, *, failed: int, done: int) -> bool:
        """Return True if the stage is no worse than what was accepted: no more failed, no fewer done."""
        return failed <= self.failed and done >= self.done
