"""Path, budget and handler of every endpoint; the handlers that need few words."""

from __future__ import annotations

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Handler, Incoming
from sandbox.github.limits import Resource

from . import code_search, pulls, timeline
from .finding import find_repository
from .shapes import full_repository_json, user_json


def user(asked: RequestContext, _incoming: Incoming) -> Answer:
    """`GET /user`."""
    if asked.account is None:
        return answers.authentication_required()
    if asked.account.is_installation:
        return answers.refusal(403, "Resource not accessible by integration")
    return answers.ok(user_json(asked.account.login))


def installation(asked: RequestContext, _incoming: Incoming) -> Answer:
    """`GET /installation/repositories`: an App that was granted none reads public ones all the same."""
    if asked.account is None or not asked.account.is_installation:
        return answers.refusal(403, "You must authenticate with an installation access token")
    return answers.ok({"total_count": 0, "repositories": []})


def rate_limit(asked: RequestContext, _incoming: Incoming) -> Answer:
    """`GET /rate_limit`, which costs nothing."""
    resources = {
        name: {"limit": rate.limit, "used": rate.used, "remaining": rate.remaining, "reset": rate.reset}
        for name, rate in asked.rates().items()
    }
    return answers.ok({"resources": resources, "rate": resources["core"]})


def repository(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}`."""
    return answers.ok(full_repository_json(find_repository(asked, incoming)))


_OF_A_REPOSITORY: list[tuple[str, Handler]] = [
    ("", repository),
    ("/pulls", pulls.pulls),
    ("/pulls/{number:int}", pulls.pull),
    ("/pulls/{number:int}/files", pulls.files),
    ("/issues/{number:int}/timeline", timeline.timeline),
]

ENDPOINTS: list[tuple[str, Resource, Handler]] = [
    ("/search/code", Resource.CODE_SEARCH, code_search.code),
    ("/user", Resource.CORE, user),
    ("/installation/repositories", Resource.CORE, installation),
    *(
        (root + path, Resource.CORE, handler)
        for root in ("/repos/{owner}/{repo}", "/repositories/{id:int}")
        for path, handler in _OF_A_REPOSITORY
    ),
]
"""The target of a 301, `/repositories/{id}…`, responds like the path by name."""
