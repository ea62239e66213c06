"""Builds a task's image until it passes, step by step: recipes, then rules, then an agent, within limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property

from formulacode_dagster.building.declarations.declared_requirement import requirement_name, validate
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.planning.repository import read_repository
from formulacode_dagster.building.suites.commits import find_suite
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix

from .attempts import PLAN, AttemptResult, Attempts, Author, Recipe, Task
from .built_metadata import fix_of_metadata, is_unread
from .propose import FailureLog, RepairContext, propose

MOST_ATTEMPTS = 6
"""Builds of one task in one run by rules, and by the first of the recipes; further recipes and an agent come on top."""
MOST_SECONDS = 5400.0
"""After so long no further attempt is begun."""
_BEYOND_REPAIR = frozenset({FailureKind.TIMEOUT, FailureKind.CRATES})


def forget(_: object) -> None:
    """Keep nothing of it: for trials that write no database."""


def build_until_it_holds(
    engine: Engine,
    task: Task,
    *,
    run_id: str,
    recipes: Sequence[Recipe] = (),
    author: Author | None = None,
    ineffective: Sequence[Fix] = (),
    first_attempt: int = 1,
    keep: Callable[[BuildAttempt], None] = forget,
    keep_installed: Callable[[Sequence[Listing]], None] = forget,
    force: bool = False,
    progress: ProgressReporter | None = None,
    turn: Turn = nullcontext,
) -> tuple[BuiltImage, str]:
    """Build and verify the image of *task*, repaired if a rule applies; also return the log of the build that passes.

    *recipes* of this commit and of others are tried first, in their order. If no further rule applies, *author* is
    asked until it has no proposal. *ineffective* are fixes that did not help an image of this repository that passed
    without them; they are not tried again for that.

    *turn* excludes timings on this machine during builds and verifications. Every attempt is passed to *keep* as it
    ends, numbered from *first_attempt* on; the distributions installed in the passing image, to *keep_installed*.

    Raises ItemFailure, most often the BuildFailure of the last attempt that was built; OutsideSystemError when Docker,
    the disk or the package index is gone.
    """
    attempts = Attempts(engine, task, run_id, first_attempt, keep, force, progress, turn)
    image, result = _Ladder(attempts, task, ineffective, author).image(recipes)
    if result.holds is not None:
        keep_installed(result.holds.installed)
    return image, result.log


def _fails_by_suite(result: AttemptResult) -> bool:
    """Return True if no module of the suite can be imported, or none of its benchmarks runs."""
    if result.stage == FailureKind.ONE_BENCHMARK_RUNS:
        return True
    verified = result.built and result.built.verified
    return result.stage == FailureKind.BENCHMARKS and bool(verified and verified.lost and not verified.benchmarks)


class _Ladder:
    def __init__(
        self, attempts: Attempts, task: Task, ineffective: Sequence[Fix], author: Author | None = None
    ) -> None:
        self._author = author
        self._most = MOST_ATTEMPTS
        self._attempts = attempts
        self._task = task
        self._ineffective = ineffective
        self._started = time.monotonic()
        self._refused: list[Fix] = []
        self._pythons: list[str] = []

    def image(self, recipes: Sequence[Recipe]) -> tuple[BuiltImage, AttemptResult]:
        result = self._by_recipe(recipes)
        if result is None:
            result = self._repaired(self._attempts.make((), ""))
        best = self._widened(result) if result.holds is not None else self._without_later_suite(result)
        if best.holds is None and self._author is not None:
            best = self._attempts.by_agent(self._author, best)
        if best.holds is None:
            raise best.failure or ItemFailure(FailureKind.BUILD, f"{self._task.pr.item} failed")
        image = best.holds.image.model_copy(update={"attempts": self._attempts.made})
        return image, best

    def _by_recipe(self, recipes: Sequence[Recipe]) -> AttemptResult | None:
        """Return the first passing attempt with one of *recipes*."""
        self._most += max(0, len(recipes) - 1)
        planned = self._task.environment.fixes
        for recipe in recipes:
            # without the fixes it was planned with, it may have no lock
            fixes = (*planned, *(fix for fix in recipe.fixes if fix not in planned))
            result = self._attempts.make(fixes, recipe.rule, recipe.rung)
            if result.holds is not None:
                return result
        return None

    def _repaired(self, result: AttemptResult) -> AttemptResult:
        """Return the first passing attempt, else the last that was built."""
        self._pythons = [result.spec.python]
        while result.holds is None and self._may_go_on:
            fix = self._next(result)
            if fix is None:
                break
            tried = self._attempts.make((*result.spec.fixes, fix), fix.rule)
            if tried.stage == PLAN:
                # no lock, or no interpreter, with it: the build that failed may still have another cure
                self._refused.append(fix)
            else:
                self._pythons.append(tried.spec.python)
                result = tried
        return result

    def _widened(self, result: AttemptResult) -> AttemptResult:
        """Return *result*, or better: one more attempt if the image passes, but lacks modules or requirements in its
        metadata.
        """
        if result.holds is None or not self._may_go_on:
            return result
        fix = None
        if is_unread(result.environment):
            fix = fix_of_metadata(result.holds.verified.facts, result.spec, result.environment)
        by_metadata = fix is not None
        if fix is None and result.holds.verified.lost:
            by_name = {made.name: made for made in result.holds.verified.verifications}
            discovery = by_name[FailureKind.BENCHMARKS]
            fix = self._proposed(FailureLog(discovery.name, f"{discovery.detail}\n{discovery.log_tail}"), result)
        if fix is None or fix.step_down or any(fix.asks_the_same(ineffective) for ineffective in self._ineffective):
            return result
        tried = self._attempts.make((*result.spec.fixes, fix), fix.rule)
        if tried.holds is None:
            return result
        gained = len(tried.holds.image.benchmarks) - len(result.holds.image.benchmarks)
        return tried if gained > 0 or (by_metadata and gained == 0) else result

    def _without_later_suite(self, result: AttemptResult) -> AttemptResult:
        """Return *result*, or better: a suite that the base does not have, and that does not run at it, proves nothing
        against the image.

        A list of benchmarks that was cut short without an error does: something in the image answers for the harness.
        """
        suite_sha = result.environment.suite_sha
        if suite_sha in ("", self._task.pr.change.base_sha) or not self._may_go_on or not _fails_by_suite(result):
            return result
        tried = self._attempts.make_without_suite(result)
        return result if tried.holds is None else tried

    @property
    def _may_go_on(self) -> bool:
        return self._attempts.made < self._most and time.monotonic() - self._started < MOST_SECONDS

    def _next(self, result: AttemptResult) -> Fix | None:
        failure = result.failure
        if failure is None or failure.kind in _BEYOND_REPAIR or result.stage == PLAN:
            return None
        if result.built is not None and (result.stage == FailureKind.IMPORTS or is_unread(result.environment)):
            fix = fix_of_metadata(result.built.verified.facts, result.spec, result.environment)
            if fix is not None and fix not in (*result.spec.fixes, *self._refused):
                return fix
        return self._proposed(FailureLog(result.stage, f"{result.log}\n{failure.why}"), result)

    def _proposed(self, failure: FailureLog, result: AttemptResult) -> Fix | None:
        return propose(failure, self._context(result), without=self._refused)

    def _context(self, result: AttemptResult) -> RepairContext:
        declared, has_submodules = self._repository
        older = tuple(python for python in self._task.environment.python_candidates if python not in self._pythons)
        return RepairContext(result.spec, older, declared, has_submodules)

    @cached_property
    def _repository(self) -> tuple[Mapping[str, str], bool]:
        """Requirements of the base commit's package, extras, groups and files, by name; whether it has submodules."""
        base, pr = Tree(self._task.mirror, self._task.pr.change.base_sha), self._task.pr
        declared: dict[str, str] = {}
        try:
            suite = find_suite(self._task.mirror, pr)
            repository = read_repository(base, (suite.tree,), suite.config)
            offered = [item for offer in repository.optional_groups for item in offer.items]
            for item in validate([*(repository.metadata.dependencies or ()), *offered]).accepted:
                declared.setdefault(requirement_name(item.text), item.text)
            return declared, base.has(".gitmodules")
        except (ItemFailure, Rejection):
            return {}, False
