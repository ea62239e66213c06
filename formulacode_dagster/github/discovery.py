"""Which repositories keep an asv suite, as of now, by GitHub id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository, RepositoryState

from .client import GitHubClient
from .code_search import CodeHit, find_files
from .nodes import RepositoryNode, read
from .queries import REPOSITORIES_BY_ID, REPOSITORY_BY_NAME

CONFIG_NAME = "asv.conf.json"
IDS_PER_REQUEST = 100
ATTEMPTS = 3


@dataclass(frozen=True)
class Discovery:
    """What was found, by name. Repositories with too few stars are known, and not tracked."""

    repositories: tuple[Repository, ...]
    few_stars: tuple[Repository, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    """A repository as it was found, before anything but its name was known."""

    node_id: str
    names: tuple[str, ...]
    config_path: str
    wanted: bool = False


async def discover_repositories(
    client: GitHubClient, month: Month, *, minimum_stars: int = 0, extra: Sequence[str] = ()
) -> Discovery:
    """Repositories with an `asv.conf.json`, and those named in *extra* whatever they hold or how few stars they have.

    Raises ItemFailure (kind `incomplete`) when GitHub does not show all that it counts.
    """
    candidates = _by_repository(await find_files(client, CONFIG_NAME))
    vanished: list[Repository] = []
    for name in dict.fromkeys(extra):
        node = await _by_name(client, name)
        if node is None:
            vanished.append(_vanished(month, _Candidate("", (name,), "")))
            continue
        known = candidates.get(node.id, _Candidate(node.id, (), ""))
        candidates[node.id] = _Candidate(node.id, (*known.names, name), known.config_path, wanted=True)
    nodes = await _by_id(client, list(candidates))
    kept: dict[int, Repository] = {}
    few: dict[int, Repository] = {}
    for candidate in sorted(candidates.values(), key=lambda candidate: not candidate.wanted):
        node = nodes.get(candidate.node_id)
        if node is None:
            vanished.append(_vanished(month, candidate))
            continue
        # GitHub has old and new node ids of one repository in circulation; the database id is one.
        tracked = candidate.wanted or node.stargazer_count >= minimum_stars
        (kept if tracked else few).setdefault(node.database_id, _repository(month, candidate, node))
    return Discovery(_ordered([*kept.values(), *vanished]), _ordered(few.values()))


def _by_repository(hits: Iterable[CodeHit]) -> dict[str, _Candidate]:
    """One candidate per repository; the configuration nearest to the top made us track it."""
    candidates: dict[str, _Candidate] = {}
    for hit in hits:
        known = candidates.get(hit.repository_node_id)
        names = (hit.repository,) if known is None else (*known.names, hit.repository)
        path = hit.path if known is None else known.config_path
        candidates[hit.repository_node_id] = _Candidate(hit.repository_node_id, tuple(dict.fromkeys(names)), path)
    return candidates


async def _by_name(client: GitHubClient, name: str) -> RepositoryNode | None:
    """The repository that *name* leads to, renames followed; None when there is none."""
    parsed = ItemName.parse(name)
    answer = await client.graphql(REPOSITORY_BY_NAME, {"owner": parsed.owner, "name": parsed.name})
    raw = answer.data.get("repository")
    if raw is None and answer.missing("repository"):
        return None
    return read(RepositoryNode, raw, name)


async def _by_id(client: GitHubClient, ids: Sequence[str]) -> dict[str, RepositoryNode]:
    """Metadata of all *ids* that still exist."""
    found: dict[str, RepositoryNode] = {}
    for start in range(0, len(ids), IDS_PER_REQUEST):
        pending = list(ids[start : start + IDS_PER_REQUEST])
        for _ in range(ATTEMPTS):
            answer = await client.graphql(REPOSITORIES_BY_ID, {"ids": pending})
            nodes = dict(zip(pending, answer.data.get("nodes") or [], strict=False))
            gone = {node_id for index, node_id in enumerate(pending) if answer.missing("nodes", index)}
            for node_id, raw in nodes.items():
                if raw:
                    found[node_id] = read(RepositoryNode, raw, f"repository {node_id}")
            pending = [node_id for node_id in pending if node_id not in found and node_id not in gone]
            if not pending:
                break
        else:
            words = "; ".join(str(error) for error in answer.errors)
            raise ItemFailure(
                "incomplete", f"GitHub does not tell about {len(pending)} repositories", why=words, remedy="Try again"
            )
    return found


def _repository(month: Month, candidate: _Candidate, node: RepositoryNode) -> Repository:
    names = dict.fromkeys(name for name in candidate.names if name != node.name_with_owner)
    return Repository(
        month=month.key,
        id=node.database_id,
        node_id=node.id,
        full_name=node.name_with_owner,
        aliases=tuple(sorted(names)),
        state=_state(node),
        default_branch=node.default_branch_ref.name if node.default_branch_ref else "",
        stars=node.stargazer_count,
        language=node.primary_language.name if node.primary_language else "",
        description=node.description or "",
        config_path=candidate.config_path,
    )


def _state(node: RepositoryNode) -> RepositoryState:
    if node.is_fork:
        return RepositoryState.FORK
    if node.is_private:
        return RepositoryState.PRIVATE
    if node.is_archived:
        return RepositoryState.ARCHIVED
    return RepositoryState.EMPTY if node.is_empty else RepositoryState.ACTIVE


def _vanished(month: Month, candidate: _Candidate) -> Repository:
    """What remains of a repository between the search and the look-up; it has no id any more."""
    return Repository(
        month=month.key,
        id=0,
        node_id=candidate.node_id,
        full_name=candidate.names[0],
        aliases=candidate.names[1:],
        state=RepositoryState.VANISHED,
        config_path=candidate.config_path,
    )


def _ordered(repositories: Iterable[Repository]) -> tuple[Repository, ...]:
    return tuple(sorted(repositories, key=lambda repository: (repository.full_name.lower(), repository.id)))
