"""Metadata of repositories, a hundred per request; each is returned, or the reason for its absence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .nodes import RepositoryNode, read
from .queries import REPOSITORIES_BY_ID, repositories_by_name

BATCH = 100
ATTEMPTS = 3


class Unseen(StrEnum):
    """Why GitHub reports nothing about a repository."""

    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    """It is there, and not for these tokens: an organization may demand more of them."""


Found: TypeAlias = RepositoryNode | Unseen
_Path = tuple[str | int, ...]
_Ask = Callable[[Sequence[str]], Awaitable[tuple[GraphQLAnswer, list[tuple[Any, _Path]]]]]


async def repositories_by_id(client: GitHubTransport, ids: Sequence[str]) -> dict[str, Found]:
    """Return the repository of each of the node *ids*; raises ItemFailure (`incomplete`) if GitHub cannot say."""

    async def ask(batch: Sequence[str]) -> tuple[GraphQLAnswer, list[tuple[Any, _Path]]]:
        answer = await client.graphql(REPOSITORIES_BY_ID, {"ids": list(batch)})
        nodes = answer.data.get("nodes") or [None] * len(batch)
        return answer, [(raw, ("nodes", index)) for index, raw in enumerate(nodes)]

    return await _in_batches(ask, ids)


async def repositories_named(client: GitHubTransport, names: Sequence[str]) -> dict[str, Found]:
    """Return the repository of each of *names*, following renames, ignoring case; raises as the other function.

    Raises ConfigurationError for an invalid name.
    """

    async def ask(batch: Sequence[str]) -> tuple[GraphQLAnswer, list[tuple[Any, _Path]]]:
        variables: dict[str, str] = {}
        for index, text in enumerate(batch):
            name = ItemName.parse(text)
            variables |= {f"owner{index}": name.owner, f"name{index}": name.name}
        answer = await client.graphql(repositories_by_name(len(batch)), variables)
        return answer, [(answer.data.get(f"r{index}"), (f"r{index}",)) for index in range(len(batch))]

    return await _in_batches(ask, list({name.lower(): name for name in names}.values()))


async def _in_batches(ask: _Ask, keys: Sequence[str]) -> dict[str, Found]:
    nodes: dict[str, Found] = {}
    for start in range(0, len(keys), BATCH):
        pending = list(keys[start : start + BATCH])
        for attempt in range(ATTEMPTS):
            answer, parts = await ask(pending)
            for key, (raw, path) in zip(pending, parts, strict=False):
                node = read(RepositoryNode, raw, f"repository {key}") if raw else _unseen(answer, path)
                # no token may see all of them: what is asked for by itself finds the one that may see it
                if node is not None and (node is not Unseen.FORBIDDEN or attempt or len(pending) == 1):
                    nodes[key] = node
            pending = [key for key in pending if key not in nodes]
            if not pending:
                break
        else:
            what = f"GitHub has no data on {len(pending)} repositories, {pending[0]} among them"
            raise ItemFailure(FailureKind.INCOMPLETE, what, why=answer.words(), remedy="Try again")
    return nodes


def _unseen(answer: GraphQLAnswer, path: _Path) -> Unseen | None:
    if answer.missing(*path):
        return Unseen.NOT_FOUND
    refused = any(error.type == "FORBIDDEN" and error.path == path for error in answer.errors)
    return Unseen.FORBIDDEN if refused else None
