"""Repositories that have an asv suite now, by GitHub id. `tracking` decides whether they are tracked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.intake import OnGap, SearchGap
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.sources.git.asv_files import FILE_NAMES
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .code_search import CodeHit, Gap, find_files
from .metadata import Found, Unseen, repositories_by_id, repositories_named
from .nodes import RepositoryNode
from .search_limits import PUBLIC, SearchLimits

_SWITCHED_OFF = (FailureKind.FORBIDDEN, FailureKind.VANISHED, FailureKind.REQUEST)


@dataclass(frozen=True)
class _Candidate:
    """A repository as it was found, before anything but its name was known."""

    id: int
    node_id: str
    names: tuple[str, ...]
    config_path: str = ""

    def with_(self, other: _Candidate) -> _Candidate:
        """The same repository, found in another way too; the configuration nearest to the top is the one it is for."""
        paths = [path for path in (self.config_path, other.config_path) if path]
        nearest = min(paths, key=lambda path: (path.count("/"), path), default="")
        return replace(self, names=(*self.names, *other.names), config_path=nearest)


async def discover_repositories(
    client: GitHubTransport,
    month: Month,
    wanted: Sequence[str] = (),
    limits: SearchLimits = PUBLIC,
    on_gap: OnGap | None = None,
    *,
    candidates: Mapping[str, str] = MappingProxyType({}),
    search_code: bool = True,
) -> tuple[Repository, ...]:
    """Return repositories with an asv configuration at any depth, and those *wanted* by name regardless; sorted by
    name.

    *candidates*, the path of its configuration (`` if unknown) by repository, are looked up too; without *search_code*
    they replace the search. Renames are followed. A listed or indexed repository that is no longer on GitHub is
    returned as vanished; *on_gap* receives searches that show fewer than they count, or over which GitHub timed out.
    """
    hits: list[CodeHit] = []
    for name in FILE_NAMES if search_code else ():
        shown, gaps = await _searched(client, name, limits)
        hits += shown
        for gap in gaps:
            if on_gap is not None:
                row = SearchGap(
                    month=month.key, query=gap.query, counted=gap.counted, found=gap.found, ran_out=gap.ran_out
                )
                on_gap(row)
    by_node = _by_node(hits)
    _tell(f"asking about {len(by_node)} repositories")
    about = await repositories_by_id(client, list(by_node))
    names = {name.lower() for candidate in by_node.values() for name in candidate.names}
    paths = {name.lower(): path for name, path in candidates.items()}
    named = await repositories_named(client, [name for name in (*wanted, *candidates) if name.lower() not in names])
    living: dict[int, tuple[_Candidate, RepositoryNode]] = {}
    others: list[Repository] = []
    for candidate, node in (*_of_hits(by_node, about), *_of_names(named, paths)):
        if isinstance(node, RepositoryNode):
            # GitHub has old and new node ids of one repository in circulation; the database id is one.
            before = living.get(node.database_id)
            living[node.database_id] = (candidate if before is None else before[0].with_(candidate), node)
        else:
            others.append(_unseen(month, candidate, node))
    rows = [_repository(month, candidate, node) for candidate, node in living.values()]
    return _ordered([*rows, *_without_doubles(rows, others)])


async def _searched(
    client: GitHubTransport, name: str, limits: SearchLimits
) -> tuple[tuple[CodeHit, ...], tuple[Gap, ...]]:
    try:
        return await find_files(client, name, _tell, limits)
    except ItemFailure as failure:
        if failure.kind not in _SWITCHED_OFF:
            raise
        raise ItemFailure(
            failure.kind,
            "GitHub does not search code for these tokens",
            why=str(failure),
            remedy="Name another source of repositories in FC_DISCOVERY: earlier months, or a file",
        ) from failure


def _by_node(hits: Iterable[CodeHit]) -> dict[str, _Candidate]:
    candidates: dict[str, _Candidate] = {}
    for hit in hits:
        new = _Candidate(hit.repository_id, hit.repository_node_id, (hit.repository,), hit.path)
        candidate = candidates.get(hit.repository_node_id)
        candidates[hit.repository_node_id] = new if candidate is None else candidate.with_(new)
    return candidates


def _of_hits(candidates: Mapping[str, _Candidate], about: Mapping[str, Found]) -> list[tuple[_Candidate, Found]]:
    return [(candidate, about[node_id]) for node_id, candidate in candidates.items()]


def _of_names(named: Mapping[str, Found], paths: Mapping[str, str]) -> list[tuple[_Candidate, Found]]:
    return [
        (_Candidate(_id_of_name(name), "", (name,), paths.get(name.lower(), "")), node) for name, node in named.items()
    ]


def _repository(month: Month, candidate: _Candidate, node: RepositoryNode) -> Repository:
    aliases = {name for name in candidate.names if name.lower() != node.name_with_owner.lower()}
    return Repository(
        month=month.key,
        id=node.database_id,
        node_id=node.id,
        full_name=node.name_with_owner,
        aliases=tuple(sorted(aliases)),
        state=_state(node),
        archived_at=node.archived_at,
        default_branch=node.default_branch_ref.name if node.default_branch_ref else "",
        stars=node.stargazer_count,
        language=node.primary_language.name if node.primary_language else "",
        description=node.description or "",
        size_kb=node.disk_usage or 0,
        config_path=candidate.config_path,
    )


def _state(node: RepositoryNode) -> RepositoryState:
    if node.is_fork:
        return RepositoryState.FORK
    if node.is_private:
        return RepositoryState.PRIVATE
    if node.is_empty:
        return RepositoryState.EMPTY
    return RepositoryState.ARCHIVED if node.is_archived else RepositoryState.ACTIVE


def _unseen(month: Month, candidate: _Candidate, why: Unseen) -> Repository:
    """Return the row of a repository about which GitHub reports nothing."""
    names = tuple(dict.fromkeys(candidate.names))
    return Repository(
        month=month.key,
        id=candidate.id,
        node_id=candidate.node_id,
        full_name=names[0],
        aliases=tuple(sorted(names[1:])),
        state=RepositoryState.PRIVATE if why is Unseen.FORBIDDEN else RepositoryState.VANISHED,
        config_path=candidate.config_path,
    )


def _id_of_name(name: str) -> int:
    """Return an id for a dead name: negative, so it is never mistaken for GitHub's."""
    return -int.from_bytes(hashlib.sha256(name.lower().encode()).digest()[:7], "big") - 1


def _without_doubles(living: Iterable[Repository], others: Iterable[Repository]) -> list[Repository]:
    """Return those of *others* whose name is unique: the index may contain a repository that another one replaced."""
    taken = {name.lower() for row in living for name in (row.full_name, *row.aliases)}
    kept: list[Repository] = []
    for row in others:
        if row.full_name.lower() not in taken:
            taken.add(row.full_name.lower())
            kept.append(row)
    return kept


def _ordered(repositories: Iterable[Repository]) -> tuple[Repository, ...]:
    return tuple(sorted(repositories, key=lambda repository: (repository.full_name.lower(), repository.id)))


def _tell(text: str) -> None:
    listener().note(Stage.REPOSITORIES, text)
