"""Contexts in and out of the database: a folder becomes a recipe of one commit, a row becomes a folder."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.recipe import ContextOrigin, StoredContext
from formulacode_dagster.operating.store.artifacts import IMAGES
from formulacode_dagster.operating.store.attempts import contexts_named, save_context
from formulacode_dagster.operating.store.lookup import find_pull_request

from .docker_context import DockerContext


def take_in(connection: Connection, context: DockerContext, item: ItemName) -> StoredContext:
    """Keep *context* as the recipe of the base commit of the pull request *item*, to be tried before anything else.

    Raises ConfigurationError if the pull request or its base is unknown, if the folder is of another commit or
    repository, or requests nothing.
    """
    found = find_pull_request(connection, item.repository, item.number) if item.number else None
    if found is None or found.change is None:
        raise ConfigurationError(
            f"{item} is not a known pull request", remedy="Take in its month first; write it as owner/repo#123"
        )
    facts, base = found.facts, found.change.base_sha
    _require_same(context, facts.repository, (base, facts.merge_commit_sha))
    fixes, _ = context.recipe()
    if not fixes:
        raise ConfigurationError(
            f"{context.name} requests nothing", remedy="Build without it: declared requirements are installed anyway"
        )
    stored = StoredContext.of(
        repository_id=facts.repository_id,
        repository=facts.repository,
        number=facts.number,
        base_sha=base,
        merged_at=facts.merged_at,
        provenance=ContextOrigin.IMPORTED,
        made_by=context.name,
        created_at=datetime.now(tz=UTC),
        fixes=fixes,
        files=dict(context.files),
    )
    save_context(connection, stored)
    return stored


def named(connection: Connection, prefix: str) -> StoredContext:
    """Return the context whose id begins with *prefix*; raises ConfigurationError for none or several."""
    contexts = contexts_named(connection, prefix=prefix) if prefix else []
    if len(contexts) != 1:
        what = "no context has" if not contexts else f"{len(contexts)} contexts have"
        raise ConfigurationError(f"{what} an id that begins with {prefix!r}", remedy="See them: fc-data contexts list")
    return contexts[0]


def given_out(connection: Connection, context: StoredContext) -> DockerContext:
    """Return *context* as a folder, with lock and interpreter of its image if they are still known."""
    month, key = f"{context.merged_at:%Y-%m}", (context.repository_id, context.number)
    image = IMAGES.read_keys(connection, month, [key]).get(key)
    is_its = image is not None and image.digest == context.digest
    return DockerContext.of(context, image.spec if image is not None and is_its else None)


def _require_same(context: DockerContext, repository: str, commits: tuple[str, ...]) -> None:
    task = context.task
    name = f"{task['owner']}/{task['repo']}" if {"owner", "repo"} <= task.keys() else repository
    if name.lower() != repository.lower():
        raise ConfigurationError(f"{context.name} is a context of {name}, not of {repository}")
    sha = task.get("sha", "")
    if sha and not any(commit.startswith(sha) for commit in commits):
        raise ConfigurationError(
            f"{context.name} is a context of commit {sha}", why=f"base and merge are {' and '.join(commits)}"
        )
