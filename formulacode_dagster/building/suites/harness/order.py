"""Order of benchmarks if the time may not suffice for all of them."""

from __future__ import annotations

import ast
import collections
import inspect
import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from . import suite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from types import ModuleType

_WORD = re.compile(r"[A-Za-z_]\w+")


class FoundBenchmark(NamedTuple):
    """One benchmark of the suite, as its module defines it."""

    module: ModuleType
    owner: str
    attribute: str
    definition: suite.RunnableBenchmark


def in_order_of_relevance(
    benchmarks: Sequence[FoundBenchmark], names: Iterable[str], executing: Collection[FoundBenchmark]
) -> Iterator[tuple[FoundBenchmark, int]]:
    """Iterate over every benchmark with each number of its combinations: first one of each, then the others.

    In either part, benchmarks that mention most of *names* come first, with more weight on names that few benchmarks
    use; mentions in the surrounding module weigh less than those in its class or function. The others begin with those
    of *executing*, to which the caller adds what the first part shows to execute the change. They are taken in turns,
    one combination of each, so that a survey that is cut short has seen large parameters and not just the first ones.
    """
    ranked = _ranked(benchmarks, names)
    counts = {benchmark: suite.combinations(benchmark.definition) for benchmark in ranked}
    yield from ((benchmark, 0) for benchmark in ranked if counts[benchmark])
    for is_executing in (True, False):
        group = [benchmark for benchmark in ranked if (benchmark in executing) is is_executing]
        others = [[(benchmark, index) for index in _by_halves(counts[benchmark])] for benchmark in group]
        for turn in itertools.zip_longest(*others):
            yield from filter(None, turn)


def _by_halves(count: int) -> Iterator[int]:
    """The numbers from 1 to below *count*: the middle, the middle of the upper half, that of the lower, and so on."""
    gaps = collections.deque([(0, count)])
    while gaps:
        low, high = gaps.popleft()
        middle = (low + high) // 2
        if middle > low:
            yield middle
            gaps += [(middle, high), (low, middle)]


def _ranked(benchmarks: Sequence[FoundBenchmark], names: Iterable[str]) -> list[FoundBenchmark]:
    wanted = frozenset(names)
    if not wanted:
        return list(benchmarks)
    homes = {(benchmark.module, benchmark.owner or benchmark.attribute) for benchmark in benchmarks}
    parts = {module: _words_of_parts(module) for module in {benchmark.module for benchmark in benchmarks}}
    words = {
        (module, name): wanted & (parts[module][name] if name in parts[module] else _words(getattr(module, name)))
        for module, name in homes
    }
    own = [words[benchmark.module, benchmark.owner or benchmark.attribute] for benchmark in benchmarks]
    around = {module: wanted & _words(module) for module in {benchmark.module for benchmark in benchmarks}}
    uses = collections.Counter(name for spoken in own for name in spoken)
    uses.update(name for benchmark in benchmarks for name in around[benchmark.module])

    def score(place: int) -> float:
        near = sum(1 / uses[name] for name in own[place])
        return near + sum(1 / uses[name] for name in around[benchmarks[place].module]) / len(benchmarks)

    return [benchmarks[place] for place in sorted(range(len(benchmarks)), key=lambda place: -score(place))]


def _words_of_parts(module: ModuleType) -> dict[str, frozenset[str]]:
    """Return the identifiers of each class and function of *module*, which is parsed once; `inspect` would for each."""
    try:
        lines = inspect.getsource(module).splitlines()
        body = ast.parse("\n".join(lines)).body
    except Exception:  # noqa: BLE001 - see `_words`
        return {}
    starts = [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) for node in body]
    parts = zip(body, starts, [*starts[1:], len(lines) + 1])  # noqa: B905 - CPython 3.7
    return {
        node.name: frozenset(_WORD.findall("\n".join(lines[start - 1 : end - 1])))
        for node, start, end in parts
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _words(thing: Any) -> frozenset[str]:
    """Return every identifier in the source of *thing*; none without a source."""
    try:
        return frozenset(_WORD.findall(inspect.getsource(thing)))
    except Exception:  # noqa: BLE001 - source that is not there or not readable costs only a place in the order
        return frozenset()
