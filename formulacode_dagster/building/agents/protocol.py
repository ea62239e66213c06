"""The contract between the repair ladder and a program that proposes a spec: its input, and how its run ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.recipe import Fix

from .edit import SpecEdit


class AgentName(StrEnum):
    """The supported agents; AUTO takes the first that is installed, in this order."""

    NONE = "none"
    AUTO = "auto"
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    COMMAND = "command"
    """Any program that reads the task from its input and edits the workspace."""


class AgentOutcome(StrEnum):
    """Outcome of a run of an agent."""

    EDITED = "edited"
    """`AgentRun.edit` asks for something new, and every gate let it pass."""
    REFUSED = "refused"
    """`AgentRun.gate` did not let its edit pass."""
    GAVE_UP = "gave_up"
    """It ended by itself and asks for nothing."""
    TIMED_OUT = "timed_out"
    BUDGET = "budget"
    """Tokens, dollars, turns or output were used up."""
    CRASHED = "crashed"
    LIMITED = "limited"
    """Its endpoint refuses it until `AgentRun.until`: no attempt was used."""
    OVERLOADED = "overloaded"
    """Its endpoint does not answer at the moment: no attempt was used."""
    BAD_KEY = "bad_key"
    """Its endpoint refuses the key, or the key is missing: no item can be repaired."""


NO_ATTEMPT = frozenset({AgentOutcome.LIMITED, AgentOutcome.OVERLOADED, AgentOutcome.BAD_KEY})
"""Outcomes that say nothing about the item, after which it may be tried again as if nothing had been."""


class EditGate(StrEnum):
    """Reasons to reject an edit before anything is built."""

    FILES = "files"
    """The workspace holds a link, a device, or an unexpected file."""
    FORMAT = "format"
    """`edit.toml` is invalid TOML, too long, or has fields that a spec does not have."""
    SYSTEM_PACKAGE = "system_package"
    """No plain name of a Debian package."""
    REQUIREMENT = "requirement"
    """No requirement of the index: an address, a path, an option."""
    OWN_PACKAGE = "own_package"
    """The package itself, which is built from the checkout."""
    MEASURING_TOOL = "measuring_tool"
    """A tool that times or verifies: asv, its runner, pytest's plugins."""
    ENVIRONMENT = "environment"
    """A variable that changes the behaviour of every program or the origin of packages."""
    BUILD_ARGUMENT = "build_argument"
    """A setting of the build backend that brings code in, or leads out of the repository."""
    PRE_BUILD = "pre_build"
    """A command that is no plain call of a build tool or of a file of the repository."""
    CREDENTIAL = "credential"
    """The key that the agent was given."""
    RELAY = "relay"
    """A request to the relay for anything but a build of the workspace."""


class AgentBudget(Frozen):
    """Budget of one run of an agent; the first limit reached ends the run."""

    seconds: float = Field(default=1800.0, gt=0, description="by the wall clock, which ends its container")
    tokens: int = Field(default=2_000_000, ge=0, description="in and out; 0: none may be asked for")
    dollars: float = Field(default=5.0, ge=0, description="by the prices of the settings; the endpoint's own count")
    turns: int = Field(default=40, ge=1, description="answers of the model")
    builds: int = Field(default=3, ge=0, description="builds it may ask for through the relay")


class PastAttempt(Frozen):
    """An attempt that failed, as an agent is shown it."""

    attempt: int
    stage: str = Field(description="tier or verification it ended at")
    detail: str
    rule: str = Field(default="", description="what made its last fix; `agent:…` for an agent's")
    fixes: tuple[Fix, ...] = ()
    log: str = Field(default="", repr=False, description="whole; the agent is shown its end")


class NearbyRecipe(Frozen):
    """Fixes with which a commit nearby was built."""

    what: str = Field(description="`owner/repo#12 (2024-03-01, Python 3.11)`")
    fixes: tuple[Fix, ...]


class AgentTask(Frozen):
    """Input of an agent: all of it is data to read, and `edit` is the file it may write."""

    item: str = Field(description="`owner/repo#123`")
    spec: BuildSpec = Field(description="of the last attempt")
    own_names: tuple[str, ...] = Field(
        description="names of the package on the index; none may be installed from there"
    )
    pythons: tuple[str, ...] = Field(default=(), description="interpreters that the repository allows, best first")
    declared: Mapping[str, str] = Field(
        default_factory=dict, description="texts that the base commit declares its build with, by path"
    )
    attempts: tuple[PastAttempt, ...] = ()
    nearby: tuple[NearbyRecipe, ...] = ()
    edit: SpecEdit = Field(default_factory=SpecEdit, description="what it starts from; empty the first time")


class AgentRun(Frozen):
    """How one run of an agent ended, and its cost."""

    agent: str = Field(description="name and version: `claude 2.1.330`")
    outcome: AgentOutcome
    edit: SpecEdit | None = Field(
        default=None, description="where the outcome is `edited` or `refused` and it was read"
    )
    gate: EditGate | None = Field(default=None, description="where the outcome is `refused`")
    detail: str = Field(default="", description="one line a person reads first")
    until: datetime | None = Field(default=None, description="where the outcome is `limited` and the endpoint said it")
    cost: Cost = Field(default_factory=Cost, description="model calls, tokens, dollars, seconds")
    transcript: str = Field(default="", repr=False, description="the end of what it said")


class RelayedBuild(Frozen):
    """The result of a requested build as the agent sees it. It is never trusted later: the host builds again."""

    ok: bool
    stage: str = Field(description="tier or verification it ended at, `done` when it holds")
    log: str = Field(repr=False, description="the agent is shown its end")


BuildRelay = Callable[[SpecEdit], RelayedBuild]
"""Builds and verifies an accepted edit; raises OutsideSystemError, which ends the agent's run."""


class Agent(Protocol):
    """Proposes a change to the build."""

    @property
    def name(self) -> str:
        """Its name as the rule of a fix spells it: `claude`."""

    def run(self, task: AgentTask, *, budget: AgentBudget, build: BuildRelay | None = None) -> AgentRun:
        """Let it work on *task* until it ends or *budget* is used up; all its processes are ended in either case.

        Raises OutsideSystemError when Docker or the disk is gone, or whatever *build* raises; Stopped when the run is
        cancelled.
        """
