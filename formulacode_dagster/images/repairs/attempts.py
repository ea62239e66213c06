"""One attempt after the other at the same task, each handed on to be kept as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from formulacode_dagster.engines.failures import BuildFailure
from formulacode_dagster.engines.protocol import Engine, Progress
from formulacode_dagster.git.mirror import Mirror
from formulacode_dagster.images.build import Built, build_and_verify
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import Fix, Submodule
from formulacode_dagster.specs.context import Origins
from formulacode_dagster.specs.spec import plan_build
from formulacode_dagster.suites.overlays import BASE_SUITE, SuiteFiles

PLAN = "plan"
DONE = "done"

Replan = Callable[[Sequence[Fix]], Environment]
"""Plans the environment again with fixes; raises what `plan_environment` raises."""


@dataclass(frozen=True)
class Task:
    """What stays the same through all attempts at one task's image."""

    pr: PullRequest
    environment: Environment
    """As planned without any fix."""
    mirror: Mirror
    anchor_sha: str
    os_image: str
    replan: Replan
    submodules: Callable[[Sequence[Submodule]], Mapping[str, Mirror]]
    """Mirrors of the submodules' repositories, by name."""
    suite: SuiteFiles = BASE_SUITE


@dataclass(frozen=True)
class AttemptResult:
    """How one attempt ended: `built` when it came to be verified, `failure` when it does not hold."""

    environment: Environment
    spec: BuildSpec
    built: Built | None = field(default=None, repr=False)
    failure: ItemFailure | None = None
    stage: str = DONE
    log: str = field(default="", repr=False)

    @property
    def holds(self) -> Built | None:
        """The build, when every verification holds."""
        return self.built if self.failure is None else None


@dataclass
class Attempts:
    """The attempts of one run at one task."""

    engine: Engine
    task: Task
    run_id: str
    first: int
    keep: Callable[[BuildAttempt], None]
    force: bool = False
    progress: Progress | None = None
    made: int = field(default=0, init=False)
    """How many there were."""

    def make(self, fixes: Sequence[Fix], rule: str) -> AttemptResult:
        """Plan with *fixes*, build, verify, and keep what came of it; *rule* is what made the last of them.

        Raises OutsideSystemError, after which nothing is known of the item, and what keeping raises.
        """
        started_at, started = datetime.now(tz=UTC), time.monotonic()
        result = self._attempt(fixes)
        failure = result.failure
        self.made += 1
        facts = self.task.pr.facts
        self.keep(
            BuildAttempt(
                month=facts.month,
                repository_id=facts.repository_id,
                number=facts.number,
                attempt=self.first + self.made - 1,
                run_id=self.run_id,
                engine=self.engine.name.value,
                started_at=started_at,
                seconds=round(time.monotonic() - started, 3),
                spec=result.spec,
                stage=result.stage,
                rc=0 if failure is None else getattr(failure, "rc", None),
                kind="" if failure is None else failure.kind,
                detail=f"{len(result.built.image.benchmarks)} benchmarks"
                if result.holds and result.built
                else str(failure),
                rule=rule,
                log=result.log,
            )
        )
        return result

    def _attempt(self, fixes: Sequence[Fix]) -> AttemptResult:
        task = self.task
        environment = task.environment
        try:
            if fixes:
                environment = task.replan(fixes)
            spec = self._spec(environment)
        except ItemFailure as failure:
            unplanned = self._spec(task.environment).model_copy(update={"fixes": tuple(fixes)})
            return AttemptResult(environment, unplanned, None, failure, PLAN, failure.log or failure.log_tail)
        try:
            # the mirrors stay as long as something refers to them
            modules = task.submodules(spec.submodules)
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
        except BuildFailure as failure:
            return AttemptResult(environment, spec, None, failure, failure.stage, failure.log)
        except ItemFailure as failure:
            return AttemptResult(environment, spec, None, failure, PLAN, failure.log or failure.log_tail)
        lost = built.failure
        if lost is not None:
            return AttemptResult(environment, spec, built, lost, lost.stage, lost.log)
        return AttemptResult(environment, spec, built, log=built.log)

    def _spec(self, environment: Environment) -> BuildSpec:
        task = self.task
        return plan_build(pr=task.pr, environment=environment, anchor_sha=task.anchor_sha, os_image=task.os_image)
