"""Code search: files of the default branches, by name, path, size and content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from formulacode_dagster.git.command import GitError, git
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import WEB, Asked
from sandbox.github.gateway import Incoming
from sandbox.github.library import Shelf
from sandbox.github.searching import BadQueryError, parse_counts

from .paging import page_of
from .search import capped, found
from .shapes import repository_json

LARGEST_FILE = 384 * 1024
"""Larger files are not indexed."""
_TERM = re.compile(r'(-?)(?:([A-Za-z]+):)?("[^"]*"|\S+)')
_QUALIFIERS = {"filename", "extension", "path", "size", "repo", "user", "org", "fork", "language", "in"}


@dataclass(frozen=True)
class _File:
    path: str
    blob: str
    size: int


@dataclass
class _Query:
    qualifiers: dict[str, list[str]]
    words: list[str]
    without: dict[str, list[str]]

    def values(self, name: str) -> list[str]:
        return self.qualifiers.get(name, [])


def code(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /search/code`. Forks are left out unless `fork:true` or `fork:only`; order is stable."""
    query = _parse(incoming.query.get("q", ""))
    if not query.words and not query.values("filename") and not query.values("path") and not query.values("extension"):
        return answers.invalid("You must always include at least one search term when searching source code.")
    try:
        spans = [parse_counts(value) for value in query.values("size")]
    except BadQueryError as error:
        return answers.invalid(str(error))
    hits = [
        (shelf, file)
        for shelf in asked.library.shelves()
        if _searched(asked, query, shelf)
        for file in _files(shelf, query)
        if file.size <= LARGEST_FILE and all(low <= file.size <= high for low, high in spans)
    ]
    hits.sort(key=lambda hit: (hit[0].id, hit[1].path))
    page = page_of(asked, incoming)
    shown = [_item(asked, shelf, file) for shelf, file in capped(asked, page, hits)]
    return found(asked, incoming, page, len(hits), shown)


def _parse(text: str) -> _Query:
    query = _Query({}, [], {})
    for negated, name, value in _TERM.findall(text):
        if name.lower() in _QUALIFIERS:
            chosen = query.without if negated else query.qualifiers
            chosen.setdefault(name.lower(), []).append(value.strip('"'))
        elif value.strip('"'):
            query.words.append(value.strip('"'))
    return query


def _searched(asked: Asked, query: _Query, shelf: Shelf) -> bool:
    if shelf.facts.is_private and not asked.sees_private:
        return False
    fork = (query.values("fork") or ["false"])[-1].lower()
    if (fork == "only" and not shelf.facts.is_fork) or (fork == "false" and shelf.facts.is_fork):
        return False
    names = [name.lower() for name in query.values("repo")]
    owners = [name.lower() for name in (*query.values("user"), *query.values("org"))]
    barred = [name.lower() for kind in ("repo", "user", "org") for name in query.without.get(kind, ())]
    if shelf.name.lower() in barred or shelf.owner.lower() in barred:
        return False
    return not (names or owners) or shelf.name.lower() in names or shelf.owner.lower() in owners


def _files(shelf: Shelf, query: _Query) -> Iterator[_File]:
    tip = shelf.tracker().tip
    if not tip:
        return
    paths = [path for path in _paths(shelf, tip, query.words) if _named(path, query)]
    if not paths:
        return
    asked = "".join(f"{tip}:{path}\n" for path in paths if "\n" not in path).encode()
    lines = git(shelf.path, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked)
    for path, line in zip((path for path in paths if "\n" not in path), lines.decode().splitlines(), strict=True):
        blob, kind, *size = line.split()
        if kind == "blob":
            yield _File(path, blob, int(size[0]))


def _paths(shelf: Shelf, tip: str, words: list[str]) -> list[str]:
    """All paths of the default branch; with *words*, of the files that hold each of them, or have it in their path."""
    listed = git(shelf.path, "ls-tree", "-r", "-z", "--name-only", tip).decode("utf-8", "surrogateescape")
    paths = [path for path in listed.split("\0") if path]
    for word in words:
        try:
            raw = git(shelf.path, "grep", "-I", "-i", "-l", "-z", "-F", "-e", word, tip)
        except GitError:
            raw = b""
        holding = {entry.partition(":")[2] for entry in raw.decode("utf-8", "surrogateescape").split("\0")}
        paths = [path for path in paths if path in holding or word.lower() in path.lower()]
    return paths


def _named(path: str, query: _Query) -> bool:
    folder, _, name = path.rpartition("/")
    return (
        all(_has_words(name, wanted) for wanted in query.values("filename"))
        and all(name.lower().endswith(f".{wanted.lower().lstrip('.')}") for wanted in query.values("extension"))
        and all(_within(folder, wanted) for wanted in query.values("path"))
        and all(_language(name) == wanted.lower() for wanted in query.values("language"))
        and not any(_has_words(name, barred) for barred in query.without.get("filename", ()))
        and not any(_within(folder, barred) for barred in query.without.get("path", ()))
        and not any(_language(name) == barred.lower() for barred in query.without.get("language", ()))
    )


def _has_words(name: str, wanted: str) -> bool:
    """Names are compared word by word, so that `asv.conf.json` is also found in `old-asv.conf.json.txt`."""
    words, sought = (re.findall(r"[a-z0-9_]+", text.lower()) for text in (name, wanted))
    return any(words[i : i + len(sought)] == sought for i in range(len(words) - len(sought) + 1))


def _within(folder: str, wanted: str) -> bool:
    """`path:/` is the root, `path:a/b` any folder below `a/b`."""
    sought = wanted.strip("/").lower()
    return not folder if not sought else f"{folder.lower()}/".startswith(f"{sought}/")


def _language(name: str) -> str:
    extension = name.rpartition(".")[2].lower()
    known = {
        "py": "python",
        "json": "json",
        "jsonc": "json with comments",
        "c": "c",
        "pyx": "cython",
        "toml": "toml",
        "md": "markdown",
        "yml": "yaml",
    }
    return known.get(extension, extension)


def _item(asked: Asked, shelf: Shelf, file: _File) -> dict[str, Any]:
    path = quote(file.path.encode("utf-8", "surrogateescape"))
    tip = shelf.tracker().tip
    return {
        "name": file.path.rpartition("/")[2],
        "path": file.path,
        "sha": file.blob,
        "url": f"{asked.url}/repositories/{shelf.id}/contents/{path}?ref={tip}",
        "git_url": f"{asked.url}/repositories/{shelf.id}/git/blobs/{file.blob}",
        "html_url": f"{WEB}/{shelf.name}/blob/{tip}/{path}",
        "repository": repository_json(asked, shelf),
        "score": 1.0,
    }
