"""REST search over issues, pull requests and repositories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import Asked
from sandbox.github.gateway import Incoming
from sandbox.github.searching import BadQueryError, parse_query, search_repositories, search_threads

from .issues import issue_json
from .paging import Page, page_of
from .shapes import full_repository_json

Item = TypeVar("Item")


def issues(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /search/issues`: of issues and pull requests, those that `q` names."""
    text = incoming.query.get("q", "")
    try:
        query = parse_query(text)
    except BadQueryError as error:
        return answers.invalid(str(error))
    unknown = [name for name in query.repositories if asked.visible(asked.library.current(name)) is None]
    if not text.strip() or (unknown and len(unknown) == len(query.repositories)):
        return answers.invalid(
            "The listed users and repositories cannot be searched: they do not exist, or are hidden."
        )
    by, order = incoming.query.get("sort"), incoming.query.get("order", "desc")
    query.sort = f"{by}-{order}" if by else query.sort
    hits = search_threads(asked.library, query, private=asked.sees_private)
    page = page_of(asked, incoming)
    shown = [issue_json(asked, hit.shelf, hit.thread) | {"score": 1.0} for hit in capped(asked, page, hits)]
    return found(asked, incoming, page, len(hits), shown)


def repositories(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /search/repositories`."""
    text = incoming.query.get("q", "")
    if not text.strip():
        return answers.invalid("None of the search qualifiers apply to this search type.", code="missing")
    try:
        shelves = search_repositories(asked.library, parse_query(text), private=asked.sees_private)
    except BadQueryError as error:
        return answers.invalid(str(error))
    page = page_of(asked, incoming)
    shown = [full_repository_json(asked, shelf) | {"score": 1.0} for shelf in capped(asked, page, shelves)]
    return found(asked, incoming, page, len(shelves), shown)


def capped(asked: Asked, page: Page, items: Sequence[Item]) -> Sequence[Item]:
    """The page of what a search shows."""
    return page.of(items[: asked.limits.search_cap])


def found(asked: Asked, incoming: Incoming, page: Page, total: int, shown: list[Any]) -> Answer:
    """The answer of a search; a page wholly beyond the cap is refused with 422."""
    cap = asked.limits.search_cap
    if (page.number - 1) * page.size >= cap:
        return answers.refusal(422, f"Only the first {cap} search results are available")
    body = {"total_count": total, "incomplete_results": False, "items": shown}
    return answers.ok(body, page.links(incoming, min(total, cap)))
