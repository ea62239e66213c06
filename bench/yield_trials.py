"""A trial of one pull request: through the platform's own parts, as far as it goes.

Each is independent: none starts with the recipe of a neighbour.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from merged_facts import merged_facts
from yield_measuring import Measuring
from yield_report import Results, Trial
from yield_sources import Aiming, say

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.repairs.attempts import Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.images.submodules import submodule_mirrors
from formulacode_dagster.building.planning.plan import plan_environment, unlocked_environment
from formulacode_dagster.building.specs.spec import plan_build, task_tag
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.workloads.external_suites import suites_elsewhere
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

if TYPE_CHECKING:
    from resources.containers import ContainersResource


def mirrored(repositories: Path) -> list[str]:
    """The repositories that have a mirror in the folder, as owner/name."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in repositories.glob("*/*.git"))


def facts_of(repositories: Path, item: str) -> MergedPullRequest:
    """History of *item*'s repository; raises ItemFailure (`vanished`) if there is no merge."""
    name, _, number = item.partition("#")
    found: list[MergedPullRequest] = merged_facts(repositories, name, int(number))
    if not found:
        raise ItemFailure(FailureKind.VANISHED, f"the history of {name} holds no merge of #{number}")
    return found[0]


class Laboratory:
    """Everything a trial needs."""

    def __init__(
        self,
        repositories: Path,
        containers: ContainersResource,
        engine: Engine,
        results: Results,
        *,
        every_source: bool = False,
        plan: SamplingPlan | None = None,
        replays: int = 0,
        one_core: Engine | None = None,
    ) -> None:
        """With *every_source* the contribution of each is reported, and not only the first that reaches the change.

        With a *plan* each is measured by it, with the first source that reaches the change, and its tests are run;
        faster and correct ones are measured again *replays* times, where a replay with *one_core* uses that engine.
        """
        self._repositories = repositories
        self._names = mirrored(repositories)
        self._containers = containers
        self._engine = engine
        self._results = results
        self._every_source = every_source
        self._sampling = plan
        self._replays, self._one_core = replays, one_core
        self._cores = Cores()
        self._cache = MirrorCache(containers.settings.home / "mirrors", f"file://{repositories}")
        self._resolver = containers.resolver()

    def trial(self, item: str) -> Trial:
        """Take *item* as far as it goes."""
        trial, begun = Trial(item), time.perf_counter()
        try:
            for reached in self._stages(item):
                trial = reached
        except Rejection as end:
            trial = replace(trial, reason=end.reason.value, detail=end.detail, log=end.log or end.detail)
        except ItemFailure as end:
            trial = replace(trial, reason=end.kind, detail=str(end), log=f"{end}\n\n{end.log or end.log_tail}")
        # one that is known from before has its own
        return trial if trial.seconds else replace(trial, seconds=round(time.perf_counter() - begun, 1))

    def _stages(self, item: str) -> Iterator[Trial]:
        """The trial at the start of each stage, and at the end."""
        trial = Trial(item, stage="change")
        yield trial
        mirror, pr, patch = self.change(item)
        trial = replace(trial, stage="environment", merged=pr.facts.merged_at.date().isoformat())
        yield trial
        started = time.perf_counter()
        environment = self.planned(mirror, pr, ())
        seconds = time.perf_counter() - started
        trial = replace(trial, stage="image", python=environment.python, plan_seconds=round(seconds, 1))
        yield trial
        task, spec = self.task(mirror, pr, environment)
        suite = task.suite
        asked = _asked(self._sampling, self._replays, self._every_source)
        trial = replace(trial, plan=f"{task_tag(spec)} {suite.name}{asked}")
        yield trial
        if known := self._results.timed(item, trial.plan):
            yield known
            return
        attempts: list[BuildAttempt] = []
        try:
            image, _ = build_until_it_holds(self._engine, task, run_id="yield", keep=attempts.append)
        except ItemFailure as end:
            end.log = "\n\n".join(
                f"attempt {attempt.attempt}: {attempt.stage} {attempt.detail}\n{attempt.log}" for attempt in attempts
            )
            yield _with_attempts(trial, attempts)
            raise
        trial = replace(
            _with_attempts(trial, attempts),
            stage="timing",
            python=image.spec.python,
            build_seconds=round(image.build_seconds, 1),
            verification_seconds=round(sum(verification.seconds for verification in image.verifications), 1),
            image_bytes=image.size_bytes,
            discovered=len(image.benchmarks),
        )
        yield trial
        limits = self._containers.limits
        elsewhere = suites_elsewhere(self._cache, self._names, pr, spec.benchmark_dir, say)
        if self._sampling:
            measuring = Measuring(
                self._engine,
                limits,
                self._sampling,
                image,
                mirror,
                pr,
                patch,
                self._replays,
                self._cores,
                self._one_core,
                elsewhere,
            )
            ended = measuring.measured(trial, suite)
        else:
            aiming = Aiming(self._engine, limits, image, mirror, pr, patch, self._every_source, elsewhere)
            ended = aiming.aimed(trial, suite)
        yield ended

    def change(self, item: str) -> tuple[Mirror, PullRequest, bytes]:
        """The mirror of *item*, the item with its true change, and the patch; raises ItemFailure, Rejection."""
        facts = facts_of(self._repositories, item)
        mirror = self._cache.ensure(facts.repository, commits=(facts.merge_commit_sha, facts.head_sha))
        change, patch = change_of(mirror, facts)
        return mirror, PullRequest(facts=facts, change=change), patch

    def task(self, mirror: Mirror, pr: PullRequest, environment: Environment) -> tuple[Task, BuildSpec]:
        """Constants of all attempts at its image, and the spec of the first."""
        anchor = mirror.anchor(pr.change.base_sha, Month.parse(pr.facts.month).start)
        os_image = self._containers.settings.os_image
        spec = plan_build(pr=pr, environment=environment, anchor_sha=anchor, os_image=os_image)
        task = Task(
            pr=pr,
            environment=environment,
            mirror=mirror,
            anchor_sha=anchor,
            os_image=os_image,
            replan=partial(self.planned, mirror, pr),
            submodules=partial(submodule_mirrors, self._cache),
            suite=first_suite(mirror, pr, spec.benchmark_dir, suite_sha=environment.suite_sha),
        )
        return task, spec

    def planned(self, mirror: Mirror, pr: PullRequest, fixes: Sequence[Fix]) -> Environment:
        """The platform's build, with *fixes*."""
        return plan_environment(
            mirror,
            pr,
            month=Month.parse(pr.facts.month),
            interpreters=self._engine.interpreters(),
            resolver=self._resolver,
            fixes=fixes,
        )

    def unlocked(self, mirror: Mirror, pr: PullRequest) -> Environment:
        """The input of `planned`, before pinning."""
        month = Month.parse(pr.facts.month)
        return unlocked_environment(mirror, pr, month=month, interpreters=self._engine.interpreters())


def _asked(sampling: SamplingPlan | None, replays: int, every_source: bool) -> str:
    """Stored options of a trial besides its plan: a trial with fewer options is repeated."""
    if sampling is None:
        return " by each source" if every_source else ""
    return f" measured, {replays} replays" if replays else " measured"


def _with_attempts(trial: Trial, attempts: Sequence[BuildAttempt]) -> Trial:
    way = tuple(f"{f'{attempt.rule}: ' if attempt.rule else ''}{attempt.stage}" for attempt in attempts)
    return replace(
        trial, attempts=len(attempts), way=way, image_seconds=round(sum(attempt.seconds for attempt in attempts), 1)
    )
