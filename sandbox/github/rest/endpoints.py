"""Path, budget and handler of every endpoint."""

from __future__ import annotations

from sandbox.github.gateway import Handler
from sandbox.github.limits import Resource

from . import account, code_search, issues, pulls, repositories, search

_REPOSITORY = "/repos/{owner}/{repo}"
_CORE: list[tuple[str, Handler]] = [
    ("/user", account.user),
    (_REPOSITORY, repositories.repository),
    ("/repositories/{id:int}", repositories.repository),
    (_REPOSITORY + "/commits/{ref:path}", repositories.commit),
    (_REPOSITORY + "/contents/{path:path}", repositories.contents),
    (_REPOSITORY + "/pulls", pulls.pulls),
    (_REPOSITORY + "/pulls/{number:int}", pulls.pull),
    (_REPOSITORY + "/pulls/{number:int}/files", pulls.files),
    (_REPOSITORY + "/pulls/{number:int}/commits", pulls.commits),
    (_REPOSITORY + "/issues", issues.issues),
    (_REPOSITORY + "/issues/{number:int}", issues.issue),
    (_REPOSITORY + "/issues/{number:int}/comments", issues.comments),
    (_REPOSITORY + "/issues/{number:int}/timeline", issues.timeline),
]
_BY_ID: list[tuple[str, Handler]] = [
    (path.replace(_REPOSITORY, "/repositories/{id:int}"), handler) for path, handler in _CORE if path != _REPOSITORY
]

ENDPOINTS: list[tuple[str, Resource, Handler]] = [
    ("/search/code", Resource.CODE_SEARCH, code_search.code),
    ("/search/issues", Resource.SEARCH, search.issues),
    ("/search/repositories", Resource.SEARCH, search.repositories),
    *((path, Resource.CORE, handler) for path, handler in dict([*_CORE, *_BY_ID]).items()),
]
"""What a 301 leads to, `/repositories/{id}…`, answers as the path by name does."""
