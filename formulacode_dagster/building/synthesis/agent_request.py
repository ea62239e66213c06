"""Asks an agent for the next spec of one task: its input, its result, and the reasons for not asking."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.protocol import (
    NO_ATTEMPT,
    Agent,
    AgentBudget,
    AgentOutcome,
    AgentRun,
    AgentTask,
    BuildRelay,
    NearbyRecipe,
    PastAttempt,
    RelayedBuild,
)
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.images.recipes import build_files
from formulacode_dagster.building.images.repairs.attempts import AGENT, DONE, PLAN, AttemptResult, Proposal, Task
from formulacode_dagster.building.planning.repository import read_repository
from formulacode_dagster.building.suites.commits import find_suite
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, Rejection
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix, StoredContext
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .budgets import Key, Purse, Shortage

MOST_WAITS = 3
"""Times one task waits for an endpoint that refuses or does not answer."""
OVERLOADED_SECONDS = 60.0
PATIENCE_SECONDS = 3600.0
"""Longest quota to wait for: beyond it, the agent is not asked again in this run."""
MOST_NEARBY = 5

Build = Callable[[Sequence[Fix]], AttemptResult]
"""Makes one attempt, which is kept."""


@dataclass
class AgentDispatcher:
    """The agent of one run, shared by its threads: limits on requests, concurrency, and cost."""

    agent: Agent
    purse: Purse = field(default_factory=Purse)
    run: AgentBudget = field(default_factory=AgentBudget)
    """Budget of one run of it, if the total allows it."""
    max_attempts: int = 3
    """Requests for one task."""
    tasks_per_repository: int | None = None
    """Pull requests of a repository for which it is asked in this run."""
    at_once: int = 1
    note: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], None] = field(default_factory=lambda: stop_request().sleep)
    closed: str = field(default="", init=False)
    """Reason for not asking it again in this run."""
    _asked: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._seats = threading.BoundedSemaphore(self.at_once)

    def author(self, contexts: Sequence[StoredContext] = (), earlier: Sequence[PastAttempt] = ()) -> AgentAuthor:
        """Asks it for one task, and shows it *contexts* of the repository and attempts of *earlier* runs."""
        return AgentAuthor(self, contexts, earlier)

    def admits(self, key: Key) -> bool:
        """Return True if it may be asked for *key*, by the number of pull requests of a repository; count it."""
        repository_id, number = key
        with self._lock:
            asked = self._asked[repository_id]
            is_one_more = number not in asked
            if is_one_more and self.tasks_per_repository is not None and len(asked) >= self.tasks_per_repository:
                return False
            asked.add(number)
            return True

    def ask(self, key: Key, task: AgentTask, build: BuildRelay) -> AgentRun | Shortage:
        """Return one run of the agent, within what is left; or the exhausted budget."""
        with self._seats:
            held = self.purse.hold(key, self.run)
            if isinstance(held, Shortage):
                return held
            cost, started = Cost(), time.monotonic()
            try:
                run = self.agent.run(task, budget=held, build=build)
                cost = run.cost
            finally:
                # a run that was cut off from outside has used its time at least
                self.purse.settle(key, held, cost if cost != Cost() else Cost(seconds=time.monotonic() - started))
            return run


@dataclass
class AgentAuthor:
    """Implements `repairs.attempts.Author` with the agent of a desk, for one task."""

    desk: AgentDispatcher
    contexts: Sequence[StoredContext] = ()
    earlier: Sequence[PastAttempt] = ()
    _asked: int = field(default=0, init=False)
    _waits: int = field(default=0, init=False)
    _edit: SpecEdit = field(default_factory=SpecEdit, init=False)
    _wait_seconds: float = field(default=0.0, init=False)

    def propose(self, tried: Sequence[BuildAttempt], task: Task, build: Build) -> Proposal | None:
        """Ask for a spec after the attempts *tried*; None when it was asked often enough, or may not be asked.

        Raises ConfigurationError when its endpoint takes no key of ours; OutsideSystemError.
        """
        desk, key = self.desk, task.pr.key
        refusal = self._refusal(key)
        if refusal:
            desk.note(f"no agent runs: {refusal}")
            return None
        base = _fixes_without(desk.agent, tried)
        run = desk.ask(key, self._task(tried, task), self._relay(base, build))
        if isinstance(run, Shortage):
            desk.note(f"no agent runs: {run}")
            return None
        return self._answered(run, base)

    def _refusal(self, key: Key) -> str:
        desk = self.desk
        if self._wait_seconds and not desk.closed:
            desk.note(f"{desk.agent.name} is asked again in {self._wait_seconds:.0f} s")
            desk.sleep(self._wait_seconds)
            self._wait_seconds = 0.0
        if desk.closed or self._asked >= desk.max_attempts:
            return desk.closed or f"{desk.agent.name} was asked {self._asked} times"
        return "" if desk.admits(key) else "it was asked for enough pull requests of this repository"

    def _answered(self, run: AgentRun, base: tuple[Fix, ...]) -> Proposal:
        desk = self.desk
        if run.outcome is AgentOutcome.BAD_KEY:
            raise ConfigurationError(
                f"{desk.agent.name} cannot be asked", why=run.detail, remedy="Set a key that its endpoint takes"
            )
        log = f"agent {run.agent}: {run.outcome} {run.detail}\n{run.transcript}".rstrip()
        if run.outcome in NO_ATTEMPT:
            self._put_off(run)
        else:
            self._asked += 1
        if run.outcome is AgentOutcome.EDITED and run.edit is not None:
            self._edit = run.edit
            fixes = (*base, run.edit.as_fix(desk.agent.name))
            return Proposal(desk.agent.name, fixes, cost=run.cost, log=log, made_by=run.agent)
        gate = "" if run.gate is None else f" by the gate {run.gate}"
        failure = ItemFailure(
            FailureKind(f"agent_{run.outcome}"), f"{desk.agent.name} made no spec: {run.outcome}{gate}", why=run.detail
        )
        stage = AGENT if run.gate is None else run.gate.value
        return Proposal(desk.agent.name, failure=failure, cost=run.cost, log=log, made_by=run.agent, stage=stage)

    def _put_off(self, run: AgentRun) -> None:
        seconds = OVERLOADED_SECONDS * 2.0**self._waits
        if run.until is not None:
            seconds = max(0.0, (run.until - datetime.now(tz=UTC)).total_seconds())
        self._waits += 1
        if seconds > PATIENCE_SECONDS or self._waits > MOST_WAITS:
            self.desk.closed = f"{self.desk.agent.name} is {run.outcome}: {run.detail}"
        self._wait_seconds = max(seconds, 1.0)

    def _relay(self, base: tuple[Fix, ...], build: Build) -> BuildRelay:
        def relayed(edit: SpecEdit) -> RelayedBuild:
            result = build((*base, edit.as_fix(self.desk.agent.name)))
            why = "" if result.failure is None else f"\n{result.failure}"
            return RelayedBuild(ok=result.failure is None, stage=result.stage, log=f"{result.log}{why}")

        return relayed

    def _task(self, tried: Sequence[BuildAttempt], task: Task) -> AgentTask:
        base = task.pr.change.base_sha
        held = [context for context in self.contexts if context.held_at and context.fixes]
        return AgentTask(
            item=task.pr.item,
            spec=tried[-1].spec,
            own_names=_own_names(task),
            pythons=task.environment.python_candidates,
            declared={
                path: content.decode(errors="replace")
                for path, content in build_files(task.mirror, base, task.environment).items()
            },
            attempts=(*self.earlier, *map(past_attempt, tried)),
            nearby=tuple(
                NearbyRecipe(
                    what=f"{context.repository}#{context.number} ({context.merged_at:%Y-%m-%d})", fixes=context.fixes
                )
                for context in held[:MOST_NEARBY]
            ),
            edit=self._edit,
        )


def past_attempt(attempt: BuildAttempt) -> PastAttempt:
    """*attempt* as an agent is shown it."""
    return PastAttempt(
        attempt=attempt.attempt,
        stage=attempt.stage,
        detail=attempt.detail,
        rule=attempt.rule,
        fixes=attempt.spec.fixes,
        log=attempt.log,
    )


def _fixes_without(agent: Agent, tried: Sequence[BuildAttempt]) -> tuple[Fix, ...]:
    """Return the fixes of the last attempt that was planned without *agent*, as the base of its edit."""
    own = f"agent:{agent.name}"
    planned = [attempt for attempt in tried if attempt.rule != own and attempt.stage not in (PLAN, DONE)]
    return planned[-1].spec.fixes if planned else ()


def _own_names(task: Task) -> tuple[str, ...]:
    base = Tree(task.mirror, task.pr.change.base_sha)
    names = [task.environment.package_name, task.pr.facts.repository.partition("/")[2]]
    try:
        suite = find_suite(task.mirror, task.pr)
        names.append(read_repository(base, (suite.tree,), suite.config).own_name)
    except (ItemFailure, Rejection):
        # the environment was planned once: a package without metadata is known by its folder and import name
        pass
    return tuple(dict.fromkeys(filter(None, names)))
