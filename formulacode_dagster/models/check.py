"""The verdict of an asset check, kept so that a gate holds across runs."""

from __future__ import annotations

from pydantic import Field

from .base import Frozen
from .items import Stage


class GateVerdict(Frozen):
    """What a check said of one month of one asset. Verdict functions are pure and return this."""

    stage: Stage
    month: str
    check: str
    passed: bool
    blocking: bool
    summary: str = Field(description="one line: what was found")
    offenders: tuple[str, ...] = Field(default=(), description="items that break the rule, at most 50")
    figures: dict[str, float] = Field(default_factory=dict, description="numbers behind the verdict, plotted by month")
