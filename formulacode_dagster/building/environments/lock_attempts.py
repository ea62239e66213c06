"""Further attempts at a lock if a repository's declarations yield none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from formulacode_dagster.building.images.repairs.attempts import PLAN, AttemptResult, Attempts, Author, Recipe
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reasons import FailureKind

WITHOUT_LOCK = frozenset({FailureKind.LOCK, FailureKind.TIMEOUT})
"""Failures of a plan that other bounds, requirements, or another interpreter may cure."""


LOCKED = "locked"
"""Stage of an attempt at a lock that found one."""


@dataclass
class LockAttempts(Attempts):
    """Attempts at a lock if the declarations yield none; nothing is built."""

    made_in: ClassVar[Stage] = Stage.ENVIRONMENTS

    def begin(self, failure: ItemFailure) -> AttemptResult:
        """Keep that the declarations failed as *failure* says."""
        spec, log = self._spec(self.task.environment), failure.log or failure.log_tail
        result = AttemptResult(self.task.environment, spec, None, failure, PLAN, log)
        self._keep(result, "", Rung.RULES, datetime.now(tz=UTC), 0.0)
        return result

    def _built(self, environment: Environment, spec: BuildSpec) -> AttemptResult:
        return AttemptResult(environment, spec, stage=LOCKED)


def lock_otherwise(
    attempts: LockAttempts, failure: ItemFailure, *, recipes: Sequence[Recipe] = (), author: Author | None = None
) -> Environment:
    """Return the environment by the first of *recipes*, or by *author*, that yields a lock.

    *failure* is how these failed. It, and every attempt, is kept. Raises the last ItemFailure; OutsideSystemError.
    """
    if not recipes and author is None:
        raise failure
    latest = attempts.begin(failure)
    for recipe in recipes:
        tried = attempts.make(recipe.fixes, recipe.rule, recipe.rung)
        if tried.failure is None:
            return tried.environment
    if author is not None:
        latest = attempts.by_agent(author, latest)
    if latest.failure is not None:
        raise latest.failure
    return latest.environment
