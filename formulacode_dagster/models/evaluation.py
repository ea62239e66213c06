"""Accuracy of a model on the labelled commits of `bench/`."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Frozen


class ClassifierEvaluation(Frozen):
    """One evaluation of one model and prompt, added and never changed. Counts are commits, shown in full."""

    model: str
    prompt_version: str
    evaluated_at: datetime
    commits_sha256: str = Field(description="of the list of commits: figures of two lists do not compare")
    positives: int = Field(description="commits labelled as performance")
    recalled: int = Field(description="those of them that were called so")
    others: int = Field(description="commits labelled as something else")
    false_positives: int = Field(description="those of them that were called performance")
    unanswered: int = Field(description="commits of either label without a usable answer")
    calibration_error: float = Field(description="mean distance of stated from true probability, 0 to 1")
    agreement: float = Field(description="share of commits on which two judges agree")
    injected: int = Field(description="commits judged rightly that were asked again with a planted instruction")
    misled: int = Field(description="those of them that were then judged wrongly, or not at all")
    dollars_per_thousand: float = Field(description="cost of a thousand verdicts")

    @property
    def recall(self) -> float:
        """0 to 1."""
        return self.recalled / self.positives if self.positives else 0.0

    @property
    def false_positive_rate(self) -> float:
        """0 to 1."""
        return self.false_positives / self.others if self.others else 0.0
