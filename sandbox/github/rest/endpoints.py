"""Path, budget and handler of every endpoint."""

from __future__ import annotations

from sandbox.github.gateway import Handler
from sandbox.github.limits import Resource

from . import account, code_search, pulls, repositories, timeline

_OF_A_REPOSITORY: list[tuple[str, Handler]] = [
    ("", repositories.repository),
    ("/pulls", pulls.pulls),
    ("/pulls/{number:int}", pulls.pull),
    ("/pulls/{number:int}/files", pulls.files),
    ("/issues/{number:int}/timeline", timeline.timeline),
]

ENDPOINTS: list[tuple[str, Resource, Handler]] = [
    ("/search/code", Resource.CODE_SEARCH, code_search.code),
    ("/user", Resource.CORE, account.user),
    *(
        (repository + path, Resource.CORE, handler)
        for repository in ("/repos/{owner}/{repo}", "/repositories/{id:int}")
        for path, handler in _OF_A_REPOSITORY
    ),
]
"""What a 301 leads to, `/repositories/{id}…`, answers as the path by name does."""
