"""The verdict on a pull request, the taxonomy of performance changes, and the accuracy of a model."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .completion import OutputMode


class Category(StrEnum):
    """The 14 kinds of performance change. The only enumeration of them."""

    USE_BETTER_ALGORITHM = "use_better_algorithm"
    USE_BETTER_DATA_STRUCTURE_AND_LAYOUT = "use_better_data_structure_and_layout"
    USE_LOWER_LEVEL_SYSTEM = "use_lower_level_system"
    ACCEPT_LESS_PRECISE_SOLUTION = "accept_less_precise_solution"
    USE_PARALLELIZATION = "use_parallelization"
    REMOVE_OR_REDUCE_WORK = "remove_or_reduce_work"
    CACHE_AND_REUSE = "cache_and_reuse"
    DO_IT_EARLIER_BATCH_THROTTLE = "do_it_earlier_batch_throttle"
    SCALE_PLATFORM = "scale_platform"
    DATABASE_AND_STORAGE_TUNING = "database_and_storage_tuning"
    MICRO_OPTIMIZATIONS = "micro_optimizations"
    IO_AND_LATENCY_HIDING = "io_and_latency_hiding"
    USE_HIGHER_LEVEL_SYSTEM = "use_higher_level_system"
    UNCATEGORIZED = "uncategorized"


class Difficulty(StrEnum):
    """How hard the change is to find and make."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class JudgeOpinion(Frozen):
    """One judge's opinion of a candidate."""

    model: str = Field(description="its name")
    is_performance: bool
    category: Category
    difficulty: Difficulty
    confidence: float
    reason: str
    evidence: tuple[str, ...]
    output_mode: OutputMode
    temperature: float | None


class Classification(PullRequestRow):
    """A candidate that the model judged, whichever way."""

    is_performance: bool = Field(description="the verdict")
    category: Category = Field(description="one of 14 kinds of performance change")
    difficulty: Difficulty = Field(description="easy, medium or hard")
    confidence: float = Field(ge=0.0, le=1.0, description="the model's own, 0 to 1")
    reason: str = Field(description="why, in the model's words")
    evidence: tuple[str, ...] = Field(default=(), description="quotes from the diff's changed lines, verified")
    model: str = Field(description="name of the model that judged")
    output_mode: OutputMode = Field(
        default=OutputMode.JSON_SCHEMA,
        description="how its answer was bound to the schema, as the endpoint understands",
    )
    temperature: float | None = Field(default=None, description="it was asked with; null: left to the endpoint")
    prompt_version: str = Field(description="version of the question it was asked")
    opinions: tuple[JudgeOpinion, ...] = Field(
        default=(), description="of both judges, the first one's first; empty without a second"
    )
    disagreements: tuple[str, ...] = Field(
        default=(), description="subject of disagreement: `is_performance`, or `category` and `difficulty`"
    )
    patch_truncated: bool = Field(description="whether the patch was cut before the call; never silently")


class ClassifierEvaluation(Frozen):
    """One evaluation of one model and prompt on the labelled commits of `bench/`, added and never changed.

    Counts are commits, shown in full.
    """

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
