"""One attempt after the other at the same task, each handed on to be kept as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from formulacode_dagster.building.agents.edit import RULE
from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.build import Built, build_and_verify
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.specs.spec import plan_build
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.image import WORKLOADS_FOLDER, BuildSpec
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix, StoredContext, Submodule
from formulacode_dagster.sources.git.mirror import Mirror

PLAN = "plan"
DONE = "done"
AGENT = "agent"
"""Stage of an attempt that ended before anything could be planned: the agent made no spec."""
WITHOUT_SUITE = "without_suite"
"""The rule of an attempt without the suite of a later commit, which does not run at the base."""
AGENT_RULE = f"{RULE}:"
"""Prefix of the rule of an agent's fix; the agent's name follows."""

_BEYOND_ANY_SPEC = frozenset(
    {
        FailureKind.UNEXPECTED,
        FailureKind.DISK,
        FailureKind.CREDENTIALS,
        FailureKind.GIT,
        FailureKind.MIRROR,
        FailureKind.MIRROR_BROKEN,
        FailureKind.SHALLOW,
        FailureKind.COMMIT_MISSING,
        FailureKind.FILES_MISSING,
    }
)
"""Failures of the machine, its settings, of the mirror, or of ours: no agent is paid to look at them."""

Replan = Callable[[Sequence[Fix]], Environment]
"""Plans the environment again with fixes; raises as `plan_environment`."""


@dataclass(frozen=True)
class Recipe:
    """All fixes of an image that held, as one attempt at another."""

    rung: Rung
    fixes: tuple[Fix, ...]

    @property
    def rule(self) -> str:
        """The rule of the attempt."""
        return "recipe_of_this_commit" if self.rung is Rung.STORED else "recipe_of_a_neighbour"

    def asks_the_same(self, other: Recipe) -> bool:
        """Return True if *other* has the same fixes, on any evidence."""
        return len(self.fixes) == len(other.fixes) and all(
            mine.asks_the_same(theirs) for mine, theirs in zip(self.fixes, other.fixes, strict=True)
        )


@dataclass(frozen=True)
class Proposal:
    """The request to an agent and its result."""

    agent: str
    fixes: tuple[Fix, ...] = ()
    """All fixes of the spec, the agent's own among them."""
    failure: ItemFailure | None = None
    """Reason for building nothing."""
    cost: Cost = Cost()
    """Tokens, dollars, and its seconds."""
    log: str = field(default="", repr=False)
    made_by: str = ""
    """Name and version of the agent."""
    stage: str = AGENT
    """Its outcome if there is nothing to build: the gate that rejected its edit, if one did."""


class Author(Protocol):
    """Makes fixes if no rule applies."""

    def propose(
        self, tried: Sequence[BuildAttempt], task: Task, build: Callable[[Sequence[Fix]], AttemptResult]
    ) -> Proposal | None:
        """Return the next build after the attempts *tried* of this run; None if there is nothing more to try.

        *build* makes an attempt with other fixes meanwhile, which is kept as any is.

        Raises OutsideSystemError and ConfigurationError if no other item would fare better.
        """


class Authors(Protocol):
    """Authors of fixes for the pull requests of one run of a stage."""

    @property
    def concurrency(self) -> int:
        """Tasks for which fixes may be written at the same time."""
        ...

    def author(self, pr: PullRequest, contexts: Sequence[StoredContext]) -> Author:
        """Return the author for *pr*, which knows the *contexts* of the repository."""
        ...

    def unasked(self, prs: Collection[PullRequest]) -> list[str]:
        """Return the items of *prs* that failed in the stage without this run's agent having been asked."""
        ...


@dataclass(frozen=True)
class Task:
    """Constants of all attempts at one task's image."""

    pr: PullRequest
    environment: Environment
    """The plan without any fix."""
    mirror: Mirror
    anchor_sha: str
    os_image: str
    replan: Replan
    submodules: Callable[[Sequence[Submodule]], Mapping[str, Mirror]]
    """Mirrors of the submodules' repositories, by name."""
    suite: SuiteFiles = BASE_SUITE


@dataclass(frozen=True)
class AttemptResult:
    """How one attempt ended: `built` if it was verified, `failure` if it did not pass."""

    environment: Environment
    spec: BuildSpec
    built: Built | None = field(default=None, repr=False)
    failure: ItemFailure | None = None
    stage: str = DONE
    log: str = field(default="", repr=False)

    @property
    def holds(self) -> Built | None:
        """The build, if every verification passes."""
        return self.built if self.failure is None else None

    @property
    def detail(self) -> str:
        """One line a person reads first."""
        if self.failure is not None:
            return str(self.failure)
        found = f"{len(self.built.image.benchmarks)} benchmarks" if self.built is not None else ""
        return found or f"Python {self.environment.python}"


@dataclass
class Attempts:
    """The attempts of one run at one task's image."""

    engine: Engine
    task: Task
    run_id: str
    first: int
    keep: Callable[[BuildAttempt], None]
    force: bool = False
    progress: ProgressReporter | None = None
    turn: Turn = nullcontext
    """Excludes timings during builds and verifications."""
    kept: list[BuildAttempt] = field(default_factory=list, init=False)
    """The attempts so far."""
    made_in: ClassVar[Stage] = Stage.IMAGES

    @property
    def made(self) -> int:
        """Number of attempts so far."""
        return len(self.kept)

    def make(self, fixes: Sequence[Fix], rule: str, rung: Rung = Rung.RULES) -> AttemptResult:
        """Plan with *fixes*, build, verify, and store the result; *rule* made the last of them.

        Raises OutsideSystemError, after which the item's state is unknown, and the errors of storing.
        """
        started_at, started = datetime.now(tz=UTC), time.monotonic()
        result = self._attempt(fixes)
        self._keep(result, rule, rung, started_at, time.monotonic() - started)
        return result

    def make_without_suite(self, latest: AttemptResult) -> AttemptResult:
        """Build what *latest* built, planned without a suite: workloads are found at measurement. Raises as `make`."""
        started_at, started = datetime.now(tz=UTC), time.monotonic()
        environment = latest.environment.model_copy(update={"benchmark_dir": WORKLOADS_FOLDER})
        result = self._built(environment, self._spec(environment))
        self._keep(result, WITHOUT_SUITE, Rung.RULES, started_at, time.monotonic() - started)
        return result

    def make_proposed(self, proposal: Proposal, asked_at: datetime, latest: AttemptResult) -> AttemptResult:
        """Build an agent's proposal like any other; an agent without a proposal is an attempt, too.

        *asked_at* is when it was asked. Raises as `make`.
        """
        started = time.monotonic()
        if proposal.failure is not None:
            result = AttemptResult(latest.environment, latest.spec, None, proposal.failure, proposal.stage)
        else:
            try:
                result = self._attempt(proposal.fixes)
            except (OutsideSystemError, SuspectedOutage) as error:
                # the agent's cost is recorded in any case
                gone = ItemFailure(FailureKind.UNEXPECTED, str(error))
                lost = AttemptResult(latest.environment, latest.spec, None, gone, AGENT)
                self._keep(lost, AGENT_RULE + proposal.agent, Rung.AGENT, asked_at, proposal.cost.seconds, proposal)
                raise
        seconds = proposal.cost.seconds + time.monotonic() - started
        self._keep(result, AGENT_RULE + proposal.agent, Rung.AGENT, asked_at, seconds, proposal)
        return result

    def by_agent(self, author: Author, latest: AttemptResult) -> AttemptResult:
        """The first attempt that *author* proposes and that does not fail, else its last; *latest* is the one before.

        No agent is asked about failures that no spec can fix. Raises as `make`.
        """
        while latest.failure is not None and latest.failure.kind not in _BEYOND_ANY_SPEC:
            asked_at = datetime.now(tz=UTC)
            proposal = author.propose(self.kept, self.task, self._relayed)
            if proposal is None:
                break
            latest = self.make_proposed(proposal, asked_at, latest)
        return latest

    def _relayed(self, fixes: Sequence[Fix]) -> AttemptResult:
        """An attempt that an agent asks for while it is at work."""
        return self.make(fixes, fixes[-1].rule, Rung.AGENT)

    def _keep(
        self,
        result: AttemptResult,
        rule: str,
        rung: Rung,
        started_at: datetime,
        seconds: float,
        proposal: Proposal | None = None,
    ) -> None:
        failure, facts = result.failure, self.task.pr.facts
        cost = Cost() if proposal is None else proposal.cost
        log = result.log if proposal is None else f"{proposal.log}\n{result.log}".strip("\n")
        self.kept.append(
            BuildAttempt(
                month=facts.month,
                repository_id=facts.repository_id,
                number=facts.number,
                attempt=self.first + self.made,
                made_in=self.made_in,
                run_id=self.run_id,
                engine=self.engine.name.value,
                started_at=started_at,
                seconds=round(seconds, 3),
                spec=result.spec,
                stage=result.stage,
                rc=0 if failure is None else getattr(failure, "rc", None),
                kind="" if failure is None else failure.kind,
                detail=result.detail,
                rule=rule,
                rung=rung,
                agent="" if proposal is None else proposal.made_by or proposal.agent,
                agent_seconds=cost.seconds,
                tokens_in=cost.tokens_in,
                tokens_out=cost.tokens_out,
                dollars=cost.dollars,
                log=log,
            )
        )
        self.keep(self.kept[-1])

    def _attempt(self, fixes: Sequence[Fix]) -> AttemptResult:
        task = self.task
        environment = task.environment
        try:
            if fixes:
                environment = task.replan(fixes)
            spec = self._spec(environment)
        except ItemFailure as failure:
            if isinstance(failure, SuspectedOutage) and failure.kind is not FailureKind.TIMEOUT:
                # no other plan would fare better
                raise
            unplanned = self._spec(task.environment).model_copy(update={"fixes": tuple(fixes)})
            return AttemptResult(environment, unplanned, None, failure, PLAN, failure.log or failure.log_tail)
        return self._built(environment, spec)

    def _built(self, environment: Environment, spec: BuildSpec) -> AttemptResult:
        task = self.task
        try:
            # the mirrors stay as long as something refers to them
            modules = task.submodules(spec.submodules)
            with self.turn():
                built = build_and_verify(
                    self.engine,
                    spec,
                    Origins(task.mirror.path, {name: mirror.path for name, mirror in modules.items()}),
                    pr=task.pr,
                    run_id=self.run_id,
                    suite=task.suite,
                    force=self.force,
                    progress=self.progress,
                )
        except SuspectedOutage:
            # no other build would fare better
            raise
        except ItemFailure as failure:
            stage = failure.stage if isinstance(failure, BuildFailure) else PLAN
            return AttemptResult(environment, spec, None, failure, stage, failure.log or failure.log_tail)
        lost = built.failure
        if lost is not None:
            return AttemptResult(environment, spec, built, lost, lost.stage, lost.log)
        return AttemptResult(environment, spec, built, log=built.log)

    def _spec(self, environment: Environment) -> BuildSpec:
        task = self.task
        return plan_build(pr=task.pr, environment=environment, anchor_sha=task.anchor_sha, os_image=task.os_image)
