"""Items, the unit of work: a repository or a pull request, its state in a stage, and its cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen


class Stage(StrEnum):
    """One name per artifact, shared by assets, ledger and command line, in the order of the graph."""

    REPOSITORIES = "repositories"
    PULL_REQUESTS = "pull_requests"
    CLASSIFICATIONS = "classifications"
    DISCUSSIONS = "discussions"
    PROBLEM_STATEMENTS = "problem_statements"
    ENVIRONMENTS = "environments"
    IMAGES = "images"
    MEASUREMENTS = "measurements"
    PUBLISHED_IMAGES = "published_images"
    GRADINGS = "gradings"
    PUBLISHED_DATASET = "published_dataset"
    REPLAYS = "replays"
    EXPORTS = "exports"
    AGENT_RESULTS = "agent_results"
    MONTHLY_REPORT = "monthly_report"


FROM_A_RELEASE = frozenset({Stage.REPLAYS, Stage.EXPORTS, Stage.AGENT_RESULTS})
"""Stages that need only a release; anyone can run them, on any machine and day."""
MONTH_STAGES = tuple(stage for stage in Stage if stage not in FROM_A_RELEASE)
"""Stages of a month's run."""


class ItemKind(StrEnum):
    """Kind of an item of a stage; it follows from the form of the item's name."""

    REPOSITORY = "repository"
    """`owner/repo`: a repository, or its window of merged pull requests."""
    PULL_REQUEST = "pull_request"
    """`owner/repo#123`: a pull request, or the task made of it."""
    STEP = "step"
    """Work that the whole month needs, such as the discovery of repositories or the release; part of every run."""

    @classmethod
    def of(cls, item: str) -> ItemKind:
        """Return the kind of the item with this name."""
        if "#" in item:
            return cls.PULL_REQUEST
        return cls.REPOSITORY if "/" in item else cls.STEP


def repository_of(item: str) -> str:
    """Return the `owner/repo` of an item, whether it is a repository or a pull request."""
    return item.partition("#")[0]


class ItemState(StrEnum):
    """The exactly one state in which an item ends a stage."""

    DONE = "done"
    REJECTED = "rejected"
    FAILED = "failed"
    SKIPPED = "skipped"


class Cost(Frozen):
    """Resources consumed by an item, a stage or a month. Sums with ``+``."""

    api_points: int = 0
    api_requests: int = 0
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        mine, theirs = self.model_dump(), other.model_dump()
        return Cost(**{name: mine[name] + theirs[name] for name in mine})

    @staticmethod
    def total(costs: Iterable[Cost]) -> Cost:
        """Return the sum of *costs*; zero if there are none."""
        result = Cost()
        for cost in costs:
            result = result + cost
        return result


class LedgerEntry(Frozen):
    """How one item ended one stage of one month; read by the funnel, `why` and resume."""

    stage: Stage
    month: str = Field(description="month key, YYYY-MM")
    item: str = Field(description="`owner/repo` or `owner/repo#number`")
    state: ItemState
    reason: str = Field(default="", description="rejection reason, or kind of failure, or why it was skipped")
    detail: str = Field(default="", description="one line a person reads first")
    log_tail: str = Field(default="", description="end of the log that explains a failure")
    attempt: int = 1
    run_id: str = ""
    inputs: str = Field(default="", description="fingerprint of the inputs and of the code version")
    cost: Cost = Cost()
    finished_at: datetime | None = None

    @property
    def kind(self) -> ItemKind:
        """Kind of the item: repository, pull request, or a step of the stage."""
        return ItemKind.of(self.item)


class RunOptions(Frozen):
    """Options of a materialization.

    The run config of the assets and the options of `fc-data run` take defaults and descriptions from here.
    """

    only: tuple[str, ...] = Field(
        default=(), description="repositories or pull requests, owner/repo or owner/repo#123; empty: everything"
    )
    limit_per_repository: int | None = Field(
        default=None, ge=1, description="process at most this many pull requests of each repository; empty: no limit"
    )
    concurrency: int = Field(default=8, ge=1, description="items processed at the same time")
    force: bool = Field(default=False, description="process finished items again, once for a run and its retries")
    reason: str = Field(default="", description="with force: why; forced measurements store it")
    reask: bool = Field(
        default=False, description="with force: pay the model for new answers, stored next to the old ones"
    )
    dry_run: bool = Field(default=False, description="dry run: only report what would be done")
    correction: str = Field(default="", description="why a released month is released again, as a revision")
    agent: str = Field(
        default="",
        description="coding agent for images that no rule repairs: none, auto, claude, codex, gemini or command; "
        "empty: FC_AGENT",
    )
    agent_concurrency: int = Field(default=1, ge=1, description="agents that work at the same time")
    agent_tasks_per_repository: int | None = Field(
        default=None, ge=1, description="pull requests per repository for which an agent runs; empty: no limit"
    )

    @property
    def is_partial(self) -> bool:
        """True if part of the month is left out: such a run releases nothing."""
        return bool(self.only or self.limit_per_repository)


class ItemSection(StrEnum):
    """A section of what is known about an item, as `fc-data show` prints it."""

    CLASSIFICATION = "classification"
    STATEMENT = "statement"
    PATCH = "patch"
    LOCK = "lock"
    SPEC = "spec"
    SAMPLES = "samples"
    WORKLOADS = "workloads"
    ROW = "row"
