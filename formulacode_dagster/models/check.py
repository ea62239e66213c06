"""Verdicts of asset checks on a month. They are stored, so that a gate (a blocking check) holds across runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from .base import Frozen
from .items import Stage

MAX_OFFENDERS = 50


class CheckFinding(Frozen):
    """The finding of a verdict function about the rows of one month. Verdict functions are pure."""

    passed: bool
    summary: str = Field(description="the finding, in one line")
    offenders: tuple[str, ...] = Field(default=(), description=f"items that break the rule, at most {MAX_OFFENDERS}")
    figures: dict[str, float] = Field(default_factory=dict, description="numbers behind the verdict, plotted by month")
    tally: dict[str, dict[str, int]] = Field(
        default_factory=dict, description="counts by row and column, shown as a table"
    )

    @classmethod
    def by_offenders(
        cls,
        summary: str,
        offenders: Sequence[str],
        figures: Mapping[str, float],
        tally: Mapping[str, dict[str, int]] | None = None,
    ) -> Self:
        """Return a judgement that passes if there is no offender; it names the first `MAX_OFFENDERS`."""
        return cls(
            passed=not offenders,
            summary=summary,
            offenders=tuple(offenders[:MAX_OFFENDERS]),
            figures=dict(figures),
            tally=dict(tally or {}),
        )


def repeated(values: Iterable[str]) -> list[str]:
    """Return those of *values* that occur more than once, sorted."""
    return sorted(value for value, count in Counter(values).items() if count > 1)


class Doubt(CheckFinding):
    """A judgement that failed on too little evidence to stop later stages: a blocking check only warns of it."""

    passed: Literal[False] = False


class CheckVerdict(CheckFinding):
    """A judgement as it is kept: of which check, asset and month it is, and whether it blocks if it did not pass."""

    stage: Stage
    month: str
    check: str
    blocking: bool


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
