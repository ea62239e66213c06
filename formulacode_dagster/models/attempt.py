"""One try at building and verifying a task's image, or at pinning its environment."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow
from .image import BuildSpec
from .items import Cost, Stage


class Rung(StrEnum):
    """Origin of an attempt, in the order in which origins are tried."""

    STORED = "stored"
    """The recipe of this very commit."""
    NEAREST = "nearest"
    """The recipe of a commit of the repository that is near to this one."""
    RULES = "rules"
    """The repository's declarations, and repair rules on top of them."""
    AGENT = "agent"
    """A command-line agent."""


class BuildAttempt(PullRequestRow):
    """One try at an image, or at a lock that was missing; every attempt is stored."""

    attempt: int = Field(description="1 for the first ever made of this task; never reused")
    made_in: Stage = Field(default=Stage.IMAGES, description="`environments` for a try at a lock, else `images`")
    run_id: str
    engine: str
    started_at: datetime
    seconds: float
    spec: BuildSpec
    stage: str = Field(
        description="`plan`, tier that failed (`base`, `repo`, `env`, `task`), verification, `done` or `locked`"
    )
    rc: int | None = Field(default=None, description="exit code of the step that ended it; None when it was killed")
    kind: str = Field(default="", description="kind of the failure, `` when it held")
    detail: str = ""
    rule: str = Field(default="", description="rule, recipe or agent whose fix this attempt was the first to have")
    rung: Rung = Field(default=Rung.RULES, description="what it was made of")
    agent: str = Field(default="", description="agent, `` if none")
    agent_seconds: float = Field(default=0.0, description="of `seconds`, those that the agent took")
    tokens_in: int = Field(default=0, description="tokens the agent was sent, cached ones included")
    tokens_out: int = Field(default=0, description="tokens the agent was answered with")
    dollars: float = Field(default=0.0, description="cost of the agent")
    log: str = Field(default="", repr=False, description="the whole log; kept compressed, by hash")


class AgentUse(Frozen):
    """Cost of one agent for one pull request, over all its runs."""

    repository_id: int
    number: int
    agent: str = Field(description="as it stands in a fix's rule: `agent:codex`")
    attempts: int = Field(description="runs of it, and builds that it asked for")
    held: bool = Field(description="whether one of them passes")
    cost: Cost = Field(description="tokens, dollars, and seconds of the agent itself")
