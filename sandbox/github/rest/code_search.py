"""Code search: files of the default branches, by name, size and place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from formulacode_dagster.sources.git.command import git
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming
from sandbox.github.searching import BadQueryError, parse_sizes
from sandbox.github.served_folder import ServedRepository

from .paging import page_of
from .shapes import repository_json

LARGEST_FILE = 384 * 1024
"""Larger files are not indexed."""


@dataclass(frozen=True)
class _File:
    path: str
    size: int


@dataclass
class _Query:
    name: str = ""
    forks: str = "false"
    size: tuple[int, int | None] = (0, None)
    at_root: bool | None = None

    def takes(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return _has_words(name, self.name) and self.at_root in (None, not folder)

    def holds(self, size: int) -> bool:
        low, high = self.size
        return low <= size <= (LARGEST_FILE if high is None else min(high, LARGEST_FILE))


def code(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET /search/code`. Forks are left out unless `fork:true` or `fork:only`; order is stable.

    It never shows more than its cap; a page wholly beyond is refused with 422.
    """
    try:
        query = _parse(incoming.query.get("q", ""))
    except BadQueryError as error:
        return answers.invalid_search(str(error))
    hits = [
        (served, file)
        for served in asked.folder.repositories()
        if _searched(asked, query, served)
        for file in _files(served, query)
        if query.holds(file.size)
    ]
    hits.sort(key=lambda hit: (hit[0].id, hit[1].path))
    page, cap = page_of(asked, incoming), asked.limits.search_cap
    if (page.number - 1) * page.size >= cap:
        return answers.refusal(422, f"Only the first {cap} search results are available")
    shown = [_item(served, file) for served, file in page.of(hits[:cap])]
    body = {"total_count": len(hits), "incomplete_results": False, "items": shown}
    return answers.ok(body, page.links(incoming, min(len(hits), cap)))


def _parse(text: str) -> _Query:
    """Take *text* apart.

    Raises BadQueryError for one without a name, NotImplementedError for qualifiers this sandbox does not support.
    """
    query = _Query()
    for term in text.lower().split():
        name, _, value = term.partition(":")
        if name == "filename":
            query.name = value
        elif name == "fork":
            query.forks = value
        elif name == "size":
            query.size = parse_sizes(value)
        elif term in ("path:/", "-path:/"):
            query.at_root = not term.startswith("-")
        else:
            raise NotImplementedError(f"the sandbox does not search code by {term!r}")
    if not query.name:
        raise BadQueryError("You must always include at least one search term when searching source code.")
    return query


def _searched(asked: RequestContext, query: _Query, served: ServedRepository) -> bool:
    """Return True if its files are in the index for the caller; those of a vanished repository still are."""
    if served.facts.is_private and not asked.sees_private:
        return False
    return served.facts.is_fork if query.forks == "only" else query.forks == "true" or not served.facts.is_fork


def _files(served: ServedRepository, query: _Query) -> Iterator[_File]:
    tip = served.tracker().tip
    if not tip:
        return
    for line in git(served.path, "ls-tree", "-r", "-l", "-z", tip).decode("utf-8", "surrogateescape").split("\0"):
        facts, _, path = line.partition("\t")
        if path and query.takes(path):
            _, kind, _, size = facts.split()
            if kind == "blob":
                yield _File(path, int(size))


def _has_words(name: str, wanted: str) -> bool:
    """Names are compared word by word, so that `asv.conf.json` also matches `old-asv.conf.json.txt`."""
    words, sought = (re.findall(r"[a-z0-9_]+", text.lower()) for text in (name, wanted))
    return any(words[i : i + len(sought)] == sought for i in range(len(words) - len(sought) + 1))


def _item(served: ServedRepository, file: _File) -> dict[str, Any]:
    return {"name": file.path.rpartition("/")[2], "path": file.path, "repository": repository_json(served)}
