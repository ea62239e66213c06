"""From a path to the repository, pull request or issue it names."""

from __future__ import annotations

from sandbox.github import answers
from sandbox.github.answers import Elsewhere
from sandbox.github.context import Asked
from sandbox.github.gateway import Incoming
from sandbox.github.library import Shelf
from sandbox.github.threads import PullRequest, Thread


def find_shelf(asked: Asked, incoming: Incoming) -> Shelf:
    """The repository of the path. Raises Elsewhere: 301 for a former name, 404 for none."""
    if "id" in incoming.path:
        found = asked.visible(asked.library.by_id(int(incoming.path["id"])))
    else:
        name = f"{incoming.path['owner']}/{incoming.path['repo']}"
        renamed = asked.visible(asked.library.former(name))
        if renamed is not None:
            raise Elsewhere(answers.moved(_by_id(asked, incoming, renamed)))
        found = asked.visible(asked.library.current(name))
    if found is None:
        raise Elsewhere(answers.not_found())
    return found


def find_pull(asked: Asked, incoming: Incoming) -> tuple[Shelf, PullRequest]:
    """The pull request of the path. Raises Elsewhere."""
    shelf = find_shelf(asked, incoming)
    found = shelf.tracker().pull_requests.get(int(incoming.path["number"]))
    if found is None:
        raise Elsewhere(answers.not_found())
    return shelf, found


def find_thread(asked: Asked, incoming: Incoming) -> tuple[Shelf, Thread]:
    """The issue or pull request of the path. Raises Elsewhere."""
    shelf = find_shelf(asked, incoming)
    found = shelf.tracker().thread(int(incoming.path["number"]))
    if found is None:
        raise Elsewhere(answers.not_found())
    return shelf, found


def _by_id(asked: Asked, incoming: Incoming, shelf: Shelf) -> str:
    named = f"{asked.url}/repos/{incoming.path['owner']}/{incoming.path['repo']}"
    return f"{asked.url}/repositories/{shelf.id}{incoming.url[len(named) :]}"
