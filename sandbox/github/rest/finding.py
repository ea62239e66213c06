"""From a path to the repository, pull request or issue it names."""

from __future__ import annotations

from sandbox.github import answers
from sandbox.github.answers import EarlyAnswer
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import PullRequest, Thread


def find_repository(asked: RequestContext, incoming: Incoming) -> ServedRepository:
    """The repository of the path. Raises EarlyAnswer: 301 for a former name, 404 for none."""
    if "id" in incoming.path:
        found = asked.visible(asked.folder.by_id(int(incoming.path["id"])))
    else:
        name = f"{incoming.path['owner']}/{incoming.path['repo']}"
        renamed = asked.visible(asked.folder.former(name))
        if renamed is not None:
            raise EarlyAnswer(answers.moved(_by_id(asked, incoming, renamed)))
        found = asked.visible(asked.folder.current(name))
    if found is None:
        raise EarlyAnswer(answers.not_found())
    return found


def find_pull(asked: RequestContext, incoming: Incoming) -> tuple[ServedRepository, PullRequest]:
    """The pull request of the path. Raises EarlyAnswer."""
    served = find_repository(asked, incoming)
    found = served.tracker().pull_requests.get(int(incoming.path["number"]))
    if found is None:
        raise EarlyAnswer(answers.not_found())
    return served, found


def find_thread(asked: RequestContext, incoming: Incoming) -> tuple[ServedRepository, Thread]:
    """The issue or pull request of the path. Raises EarlyAnswer."""
    served = find_repository(asked, incoming)
    found = served.tracker().thread(int(incoming.path["number"]))
    if found is None:
        raise EarlyAnswer(answers.not_found())
    return served, found


def _by_id(asked: RequestContext, incoming: Incoming, served: ServedRepository) -> str:
    named = f"{asked.url}/repos/{incoming.path['owner']}/{incoming.path['repo']}"
    return f"{asked.url}/repositories/{served.id}{incoming.url[len(named) :]}"
