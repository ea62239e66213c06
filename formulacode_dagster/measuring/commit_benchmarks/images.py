"""The image of a commit: planned, built, repaired and verified as that of a task's base is."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.recipes import context_of, declared_by, recipes_for
from formulacode_dagster.building.images.repairs.attempts import Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.images.submodules import submodule_mirrors
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

from .commits import as_pull_request


@dataclass
class CommitImages:
    """The images of the commits of one repository."""

    engine: Engine
    cache: MirrorCache
    mirror: Mirror
    resolver: Resolver
    os_image: str
    repository_id: int
    folder: Path
    """Store of verified builds, so that the next run need not verify them again."""
    run_id: str
    as_of: datetime | None = None
    """The day whose packages all environments are made of; None: each of the day of its commit."""
    contexts: list[StoredContext] = field(default_factory=list)
    """Working images of this repository; new ones are added."""
    turn: Turn = nullcontext
    """Holds off timings while something is built and verified."""

    def image(self, sha: str, progress: ProgressReporter | None = None) -> BuiltImage:
        """Return the verified image of *sha*, from an earlier run if it is still available.

        Recipes of the nearest commits that were built are tried first. Raises as `plan_environment` and
        `build_until_it_holds` do.
        """
        kept = self._kept(sha)
        if kept is None:
            kept = self._built(sha, progress)
            with disk_errors(str(self._path(sha))):
                write_atomically(self._path(sha), kept.model_dump_json().encode())
        return kept

    def _path(self, sha: str) -> Path:
        era = f"-{self.as_of.date()}" if self.as_of else ""
        return self.folder / f"{sha}-{self.engine.name}{era}.json"

    def _kept(self, sha: str) -> BuiltImage | None:
        try:
            image = BuiltImage.model_validate_json(self._path(sha).read_bytes())
        except (FileNotFoundError, ValidationError):
            # nothing is lost: it is built again
            return None
        return image if self.engine.exists(image) else None

    def _built(self, sha: str, progress: ProgressReporter | None) -> BuiltImage:
        mirror, pr = self.mirror, as_pull_request(self.mirror, sha, repository_id=self.repository_id, as_of=self.as_of)
        month = Month.of(pr.facts.merged_at)
        replan = partial(
            plan_environment, mirror, pr, month=month, interpreters=self.engine.interpreters(), resolver=self.resolver
        )
        environment = replan()
        anchor = mirror.anchor(sha, month.start)
        for commit in (anchor, sha):
            mirror.complete(commit)
        task = Task(
            pr=pr,
            environment=environment,
            mirror=mirror,
            anchor_sha=anchor,
            os_image=self.os_image,
            replan=lambda fixes: replan(fixes=fixes),
            submodules=partial(submodule_mirrors, self.cache),
            suite=first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha),
        )
        declared = declared_by(mirror, pr, environment)
        recipes = recipes_for(self.contexts, sha, declared)
        image, _ = build_until_it_holds(
            self.engine, task, run_id=self.run_id, recipes=recipes, progress=progress, turn=self.turn
        )
        self.contexts.append(context_of(image, task, declared))
        return image
