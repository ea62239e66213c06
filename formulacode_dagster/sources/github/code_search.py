"""Every file of a name on GitHub, by REST code search: counted, and split past the 1,000 that it shows.

The index covers default branches, files below 384 KB, and repositories with fewer than 500,000 files that were active
or found within the last year; forks only with more stars than their parent, and only with `fork:`.
https://docs.github.com/en/search-github/searching-on-github/searching-code
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .nodes import GitHubRecord, read
from .queries import CODE_SEARCH_PATH
from .search_limits import PUBLIC, SearchLimits

ATTEMPTS = 3
LARGEST_FILE = 384 * 1024
"""Larger files are not searched; the last slice is open to them all the same."""
FULL = 0.85
"""Target fill of a slice: filled to the brim, every other one would overflow."""


@dataclass(frozen=True)
class CodeHit:
    """A file that was found."""

    path: str
    repository_id: int
    repository_node_id: str
    repository: str


class _RepositoryPart(GitHubRecord):
    id: int
    node_id: str
    full_name: str


class _Item(GitHubRecord):
    name: str
    path: str
    repository: _RepositoryPart


class _Page(GitHubRecord):
    total_count: int
    incomplete_results: bool
    items: tuple[_Item, ...]

    @property
    def hits(self) -> set[CodeHit]:
        return {
            CodeHit(hit.path, hit.repository.id, hit.repository.node_id, hit.repository.full_name) for hit in self.items
        }


@dataclass(frozen=True)
class _Slice:
    """A part of all files of one name."""

    name: str
    size: str = ""
    where: str = ""
    forks: str = "fork:true"

    @property
    def query(self) -> str:
        return " ".join(part for part in (f"filename:{self.name}", self.forks, self.size, self.where) if part)

    def between(self, low: int, high: int) -> _Slice:
        return replace(self, size=f"size:{low}..{high}")

    def halves(self) -> tuple[_Slice, _Slice] | None:
        """Return two slices that together are this one, for files of one size; None if no qualifier is left to split
        by.
        """
        if not self.where:
            return replace(self, where="path:/"), replace(self, where="-path:/")
        if self.forks == "fork:true":
            return replace(self, forks="fork:only"), replace(self, forks="")
        return None


@dataclass(frozen=True)
class Gap:
    """A search with fewer results than its own count, or over which GitHub timed out, after all retries."""

    query: str
    counted: int
    found: int
    ran_out: bool = False


async def find_files(
    client: GitHubTransport, name: str, tell: ProgressReporter, limits: SearchLimits = PUBLIC
) -> tuple[tuple[CodeHit, ...], tuple[Gap, ...]]:
    """Return all files named exactly *name*, by repository and path, and the gaps of the search.

    *tell* receives progress.
    """
    finder = _Finder(client, name, tell, limits)
    exact = {hit for hit in await finder.find() if hit.path.rpartition("/")[2] == name}
    ordered = sorted(exact, key=lambda hit: (hit.repository.lower(), hit.path.count("/"), hit.path))
    return tuple(ordered), tuple(finder.gaps)


class _Finder:
    """Progress of one name: found so far, of how many."""

    def __init__(self, client: GitHubTransport, name: str, tell: ProgressReporter, limits: SearchLimits) -> None:
        self._client = client
        self._whole = _Slice(name)
        self._tell = tell
        self._limits = limits
        self._hits: set[CodeHit] = set()
        self._total = 0
        self.gaps: list[Gap] = []

    async def find(self) -> set[CodeHit]:
        first = await self._open(self._whole)
        self._total = first.total_count
        # Most often the unsliced question is the only one.
        if self._total <= self._limits.shown:
            await self._take(self._whole, first)
        else:
            await self._sweep()
        if len(self._hits) < self._total and not self.gaps:
            # A file may have gone while the slices were asked for one after the other.
            self._total = (await self._open(self._whole)).total_count
            self._note_gap(self._whole, self._total, len(self._hits))
        return self._hits

    def _note_gap(self, piece: _Slice, counted: int, found: int, *, ran_out: bool = False) -> None:
        if found < counted or ran_out:
            out = ", GitHub ran out of time" if ran_out else ""
            self._tell(f"{piece.query}: {found} of {counted} files, also when asked again{out}")
            self.gaps.append(Gap(piece.query, counted, found, ran_out))

    async def _sweep(self) -> None:
        """Search from small to large files, in slices as large as the counts so far suggest."""
        low = below = 0
        overflows = [(LARGEST_FILE, self._total)]
        while True:
            # a count may include files of no size: above the largest, stop waiting
            if self._total - below <= self._limits.shown or low > LARGEST_FILE:
                tail = replace(self._whole, size=f"size:>={low}")
                first = await self._open(tail)
                if first.total_count <= self._limits.shown:
                    await self._take(tail, first)
                    return
                self._total = below + first.total_count
                overflows = [(_ceiling(low), self._total)]
            high = _guess(low, below, overflows, self._limits.shown)
            piece = self._whole.between(low, high)
            first = await self._open(piece)
            if first.total_count > self._limits.shown and low < high:
                overflows.append((high, below + first.total_count))
                continue
            await self._take_or_halve(piece, first)
            low, below = high + 1, below + first.total_count
            overflows = [overflow for overflow in overflows if overflow[0] > high] or [(_ceiling(low), self._total)]

    async def _take_or_halve(self, piece: _Slice, first: _Page) -> None:
        if first.total_count <= self._limits.shown:
            await self._take(piece, first)
            return
        halves = piece.halves()
        if halves is None:
            # no qualifier is left to split by: the search shows all there is to have
            await self._take(piece, first)
            return
        counted = 0
        for half in halves:
            page = await self._open(half)
            counted += page.total_count
            await self._take_or_halve(half, page)
        self._note_gap(piece, first.total_count, counted)

    async def _open(self, piece: _Slice) -> _Page:
        """The first page of *piece*, with its count; asked again when GitHub ran out of time over it.

        A search that always times out keeps its mark: the caller records the gap.
        """
        pages = [page := await self._page(piece, 1)]
        while page.incomplete_results and len(pages) < ATTEMPTS:
            pages.append(page := await self._page(piece, 1))
        return max(pages, key=lambda page: (not page.incomplete_results, page.total_count))

    async def _take(self, piece: _Slice, first: _Page) -> None:
        """Return all hits of *piece*, over repeated queries; hits that no query returns are a gap."""
        hits: set[CodeHit] = set()
        opened, ran_out = first, False
        for attempt in range(ATTEMPTS):
            opened = await self._open(piece) if attempt else first
            pages = [opened]
            for number in range(2, -(-min(opened.total_count, self._limits.shown) // self._limits.page) + 1):
                pages.append(await self._page(piece, number))
                self._tell(f"{self._whole.name}: {len(self._hits) + number * self._limits.page} of {self._total} files")
            hits = hits.union(*(page.hits for page in pages))
            ran_out = any(page.incomplete_results for page in pages)
            if len(hits) >= opened.total_count and not ran_out:
                break
        self._note_gap(piece, opened.total_count, len(hits), ran_out=ran_out)
        self._hits |= hits
        self._tell(f"{self._whole.name}: {len(self._hits)} of {self._total} files")

    async def _page(self, piece: _Slice, number: int) -> _Page:
        query: dict[str, str | int] = {"q": piece.query, "per_page": self._limits.page, "page": number}
        answer = await self._client.rest(CODE_SEARCH_PATH, query)
        return read(_Page, answer.data, f"the code search for {piece.query!r}")


def _guess(low: int, below: int, overflows: list[tuple[int, int]], shown: int) -> int:
    """Up to which size the next slice should go.

    Sizes below *low* are in and held *below* files; *overflows* are (size, how many files up to it), the nearest last.
    A search shows *shown* files.
    """
    size, count = overflows[-1]
    if count - below <= shown:
        return max(low, size)
    # Sizes of configurations spread over their logarithm; after an overflow the middle finds a crowded size soonest.
    part = min(FULL * shown / (count - below), 0.5 if len(overflows) > 1 else 1.0)
    start, end = math.log(low + 1), math.log(size + 1)
    return max(low, min(size - 1, int(math.exp(start + part * (end - start))) - 1))


def _ceiling(low: int) -> int:
    """A size that few files from *low* on exceed; a server of one's own may search larger ones."""
    return max(LARGEST_FILE, 4 * (low + 1))
