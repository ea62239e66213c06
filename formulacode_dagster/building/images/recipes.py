"""Recipes that an image of another day was built by: this commit's own, and those of the nearest commits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import PurePosixPath

from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import ContextOrigin, Fix, StoredContext
from formulacode_dagster.sources.git.reader import CommitReader

from .repairs.attempts import AGENT_RULE, Recipe, Task

MOST_RECIPES = 3
"""Recipes tried before the plain build: this commit's, and those of two neighbours."""
IMPORTED_RULE = "imported:"
_BUILD_FILES = frozenset(
    {
        "CMakeLists.txt",
        "Cargo.toml",
        "environment.yml",
        "meson.build",
        "pyproject.toml",
        "requirements.txt",
        "setup.cfg",
        "setup.py",
    }
)


@dataclass(frozen=True)
class Declared:
    """Distance between two commits."""

    merged_at: datetime
    requirements: tuple[str, ...]
    build_files: Mapping[str, str]
    """Short hashes by path."""

    def distance(self, context: StoredContext) -> tuple[int, float, str]:
        """Requirements and build files in which *context* differs, then seconds between the merges."""
        apart = set(self.requirements) ^ set(context.requirements)
        apart_files = set(self.build_files.items()) ^ set(context.build_files.items())
        seconds = abs((self.merged_at - context.merged_at).total_seconds())
        return len(apart) + len({path for path, _ in apart_files}), seconds, context.context_id


def declared_by(reader: CommitReader, pr: PullRequest, environment: Environment) -> Declared:
    """The declarations of *pr*'s base commit, planned as *environment*."""
    contents = build_files(reader, pr.change.base_sha, environment)
    return Declared(
        pr.facts.merged_at,
        tuple(sorted({*environment.requirements, *environment.build_requirements})),
        {path: hashlib.sha256(content).hexdigest()[:16] for path, content in contents.items()},
    )


def build_files(reader: CommitReader, commit: str, environment: Environment) -> dict[str, bytes]:
    """The files at *commit* that say how the package of *environment* is built and timed, by path."""
    folders = {PurePosixPath(), PurePosixPath(environment.package_root)}
    paths = [
        path
        for path in reader.list(commit)
        if PurePosixPath(path).name in _BUILD_FILES and PurePosixPath(path).parent in folders
    ]
    return {path: reader.read(commit, path) or b"" for path in (*paths, environment.config_path) if path}


def recipes_for(contexts: Sequence[StoredContext], base_sha: str, declared: Declared) -> tuple[Recipe, ...]:
    """Return the recipes to try before the plain build: the newest of this commit, then passing ones of others, the
    nearest first.

    Packages that the nearest commit omitted are omitted first: after a context without fixes none follows.
    """
    near = _nearest(contexts, base_sha, declared)
    return _recipes(takewhile(lambda context: context.fixes, near), base_sha)


def lock_recipes_for(contexts: Sequence[StoredContext], base_sha: str, declared: Declared) -> tuple[Recipe, ...]:
    """Return the recipes to try if the declarations have no lock: the same, limited to fixes of locks."""
    near = _nearest(contexts, base_sha, declared)
    return _recipes((context for context in near if any(fix.bears_on_lock for fix in context.fixes)), base_sha)


def _nearest(contexts: Sequence[StoredContext], base_sha: str, declared: Declared) -> list[StoredContext]:
    own = sorted((each for each in contexts if each.base_sha == base_sha), key=lambda each: each.newest)[-1:]
    held = [each for each in contexts if each.base_sha != base_sha and each.held_at is not None]
    return [*own, *sorted(held, key=declared.distance)]


def _recipes(contexts: Iterable[StoredContext], base_sha: str) -> tuple[Recipe, ...]:
    recipes: list[Recipe] = []
    for context in contexts:
        rung = Rung.STORED if context.base_sha == base_sha else Rung.NEAREST
        recipe = Recipe(rung, context.fixes)
        if not any(recipe.asks_the_same(other) for other in recipes):
            recipes.append(recipe)
    return tuple(recipes[:MOST_RECIPES])


def context_of(image: BuiltImage, task: Task, declared: Declared) -> StoredContext:
    """The context that the verified *image* of *task* leaves behind."""
    now = datetime.now(tz=UTC)
    fixes = image.spec.fixes
    return StoredContext.of(
        repository_id=image.repository_id,
        repository=image.spec.repository,
        number=image.number,
        base_sha=task.pr.change.base_sha,
        merged_at=declared.merged_at,
        provenance=provenance_of(fixes),
        made_by=", ".join(dict.fromkeys(fix.rule for fix in fixes)),
        created_at=now,
        held_at=now,
        digest=image.digest,
        fixes=fixes,
        requirements=declared.requirements,
        build_files=dict(declared.build_files),
    )


def provenance_of(fixes: Sequence[Fix]) -> ContextOrigin:
    """Return origin of *fixes*: an agent or a person if one of them is theirs, else rules, else the declarations."""
    if any(fix.rule.startswith(AGENT_RULE) for fix in fixes):
        return ContextOrigin.AGENT
    if any(fix.rule.startswith(IMPORTED_RULE) for fix in fixes):
        return ContextOrigin.IMPORTED
    return ContextOrigin.RULES if fixes else ContextOrigin.DECLARED
