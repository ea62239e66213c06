"""Pages of lists: `per_page`, `page`, and the Link header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming

DEFAULT = 30

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page:
    """The requested part of a list."""

    number: int
    size: int

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """The part."""
        return items[(self.number - 1) * self.size : self.number * self.size]

    def links(self, incoming: Incoming, total: int) -> dict[str, str]:
        """Return the Link header for a list of *total* items; none if one page holds all."""
        last = max(1, -(-total // self.size))
        relations: dict[str, int] = {}
        if self.number > 1:
            relations |= {"prev": min(self.number - 1, last), "first": 1}
        if self.number < last:
            relations |= {"next": self.number + 1, "last": last}
        if not relations:
            return {}
        links = [f'<{_at(incoming.url, number)}>; rel="{name}"' for name, number in relations.items()]
        return {"link": ", ".join(links)}


def page_of(asked: RequestContext, incoming: Incoming) -> Page:
    """Return the requested page; an invalid or too large value is corrected silently, as on GitHub."""
    size = _number(incoming.query.get("per_page"), DEFAULT)
    return Page(_number(incoming.query.get("page"), 1), min(size, asked.limits.page))


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else default


def _at(url: str, page: int) -> str:
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "page"]
    return parts._replace(query=urlencode([*query, ("page", str(page))])).geturl()
