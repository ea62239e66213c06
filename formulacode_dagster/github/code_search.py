"""Every file of a name on GitHub, by REST code search: counted, and split by size past the 1,000 it shows."""

from __future__ import annotations

from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure

from .client import GitHubClient
from .nodes import Answered, read
from .queries import CODE_SEARCH_PATH

SEARCH_CAP = 1_000
PAGE = 100
ATTEMPTS = 3
LARGEST_FILE = 384 * 1024
"""Code search indexes no larger files."""


@dataclass(frozen=True)
class CodeHit:
    """A file that was found."""

    path: str
    repository_node_id: str
    repository: str


class _RepositoryPart(Answered):
    node_id: str
    full_name: str


class _Item(Answered):
    name: str
    path: str
    repository: _RepositoryPart


class _Page(Answered):
    total_count: int
    incomplete_results: bool
    items: tuple[_Item, ...]


async def find_files(client: GitHubClient, name: str) -> tuple[CodeHit, ...]:
    """All files named exactly *name*, by repository and path.

    Raises ItemFailure (kind `incomplete`) when GitHub's own count cannot be reached.
    """
    hits = await _slice(client, name, 0, LARGEST_FILE, whole=True)
    exact = {hit for hit in hits if hit.path.rpartition("/")[2] == name}
    return tuple(sorted(exact, key=lambda hit: (hit.repository.lower(), hit.path.count("/"), hit.path)))


async def _slice(client: GitHubClient, name: str, low: int, high: int, *, whole: bool = False) -> set[CodeHit]:
    # The unsliced question comes first: most often it is the only one.
    query = f"filename:{name} fork:true" + ("" if whole else f" size:{low}..{high}")
    hits: set[CodeHit] = set()
    shortage = ""
    for _ in range(ATTEMPTS):
        page = await _page(client, query, 1)
        reported = page.total_count
        if reported > SEARCH_CAP:
            if low == high:
                raise _incomplete(query, f"{reported} files of one size, search shows {SEARCH_CAP}")
            # Configurations are small: half of them lie far below the middle of the range.
            middle = low + max(0, (high - low) // 8) if high - low > SEARCH_CAP else (low + high) // 2
            lower = await _slice(client, name, low, middle)
            return lower | await _slice(client, name, middle + 1, high)
        # What a repeated question finds in addition counts: an answer may be cut short by a time limit of GitHub's.
        pages = [page]
        for number in range(2, -(-reported // PAGE) + 1):
            pages.append(await _page(client, query, number))
        hits = hits.union(*map(_hits, pages))
        if len(hits) >= reported and not any(page.incomplete_results for page in pages):
            return hits
        shortage = f"{len(hits)} of {reported} files"
    raise _incomplete(query, shortage)


async def _page(client: GitHubClient, query: str, number: int) -> _Page:
    answer = await client.rest(CODE_SEARCH_PATH, {"q": query, "per_page": PAGE, "page": number})
    return read(_Page, answer.data, f"the code search for {query!r}")


def _hits(page: _Page) -> set[CodeHit]:
    return {CodeHit(item.path, item.repository.node_id, item.repository.full_name) for item in page.items}


def _incomplete(query: str, why: str) -> ItemFailure:
    return ItemFailure("incomplete", f"the code search for {query!r} is not complete", why=why, remedy="Try again")
