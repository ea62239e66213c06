"""Probes of a task: patches that must, or must not, get a reward from its exported grader."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow

LEAST_REWARD = 0.9
"""Median reward of the author's patch below which a task is not gradable."""
CANARY = "formulacode:7d1c2f60-5c0e-4b5e-9a53-2f3f0f3d8b17"
"""Marks every task, so that training data with benchmark tasks can be found: BIG-bench's convention."""


class GradingProbe(StrEnum):
    """A patch that a task is probed with, in the order in which they are graded."""

    ORACLE = "oracle"
    """The author's patch; the only probe that must get its reward."""
    NOP = "nop"
    TESTS = "tests"
    """The changed functions return at once, and `conftest.py` reports every test as passed."""
    LAZY = "lazy"
    """The changed functions return an object that computes its value at first use."""
    CONSTANTS = "constants"
    """The changed functions look up results that were recorded at the base."""
    CACHE = "cache"
    """The changed functions keep their results by argument."""
    REFORMAT = "reformat"
    """The changed files are written in another format."""


CHEATS = tuple(probe for probe in GradingProbe if probe is not GradingProbe.ORACLE)
"""Probes that must get nothing."""


class GradedProbe(Frozen):
    """The grader's report on one probe."""

    probe: GradingProbe = Field(description="name of the probe")
    reward: float = Field(ge=0, le=1, description="as the grader gave it")
    reason: str = Field(description="the grader's reason, as `faster` or `no_change`")
    detail: str = Field(default="", description="the grader's detail, shortened")
    seconds: float = Field(ge=0, description="wall time of the probe, agent and grader together")
    cpu_seconds: float = Field(default=0.0, ge=0, description="CPU time of the grader")


def median_oracle_reward(results: Iterable[GradedProbe]) -> float:
    """Return the median reward of the author's patch among *results*; 0 without a try."""
    rewards = [result.reward for result in results if result.probe is GradingProbe.ORACLE]
    return statistics.median(rewards or (0.0,))


class ReleaseGate(Frozen):
    """Requirements on the tasks of a release, and how many tasks met them."""

    graded: int = Field(description="tasks that were probed")
    gradable: int = Field(description="of these, tasks that are released")
    not_gradable: dict[str, str] = Field(description="why the others are not, by task")
    not_graded: dict[str, int] = Field(description="released tasks that were not probed, by reason")
    rewarded: dict[str, tuple[int, int]] = Field(description="gradings with a reward, and all, by probe")
    unfinished: int = Field(description="released tasks for which the time did not suffice for every probe")
    oracle_reward: float | None = Field(description="least median reward of the author's patch; null without a task")
    cpu_seconds: float = Field(description="CPU time of all graders")
    machines: tuple[str, ...] = Field(description="CPU models and cores that graded")
    graders: tuple[str, ...] = Field(description="hashes of the graders")
    platform: str = Field(description="version of this platform")


class TaskGrading(PullRequestRow):
    """A task probed through its exported grader, from its published image; none is ever replaced."""

    attempt: int = Field(default=1, ge=1, description="number of gradings of the task so far")
    task_id: str = Field(description="`owner__repo-number`")
    image_digest: str = Field(description="digest of the published image")
    grader_sha256: str = Field(description="hash of the grader's files, its harness included")
    results: tuple[GradedProbe, ...] = Field(description="every graded probe; the oracle once for each try")
    unfinished: tuple[GradingProbe, ...] = Field(
        default=(), description="probes for which FC_GRADING_SECONDS did not suffice"
    )
    machine: str = Field(description="CPU model and cores that graded")
    graded_at: datetime = Field(description="end of the last probe, UTC")
    run_id: str = Field(description="the run that graded")

    @property
    def oracle_reward(self) -> float:
        """Median reward of the author's patch; 0 without a try."""
        return median_oracle_reward(self.results)

    @property
    def rewarded(self) -> tuple[GradedProbe, ...]:
        """Probes without an effect that got a reward."""
        return tuple(result for result in self.results if result.probe is not GradingProbe.ORACLE and result.reward > 0)

    @property
    def objections(self) -> tuple[str, ...]:
        """Reasons why the task is not gradable, a sentence each; empty if it is."""
        found = [f"{result.probe} gets {result.reward:.2f} ({result.reason})" for result in self.rewarded]
        if self.oracle_reward < LEAST_REWARD:
            tries = [result for result in self.results if result.probe is GradingProbe.ORACLE]
            last = f": {tries[-1].reason} {tries[-1].detail}".rstrip() if tries else ""
            found.insert(0, f"the author's patch gets {self.oracle_reward:.2f} in {len(tries)} tries{last}")
        return tuple(found)

    @property
    def is_gradable(self) -> bool:
        """True if the author's patch gets its reward, and no other probe gets any."""
        return not self.objections
