"""Order of benchmarks if the time may not suffice for all of them."""

from __future__ import annotations

import collections
import inspect
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from . import suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

_WORD = re.compile(r"[A-Za-z_]\w+")


class FoundBenchmark(NamedTuple):
    """One benchmark of the suite, as its module defines it."""

    module: ModuleType
    owner: str
    attribute: str
    definition: suite.RunnableBenchmark


def in_order_of_relevance(
    benchmarks: Sequence[FoundBenchmark], names: Iterable[str]
) -> list[tuple[FoundBenchmark, int]]:
    """Every benchmark with each number of its combinations: first one of each, then the others.

    Within either, benchmarks that mention most of *names* come first, with more weight on names that few benchmarks
    use; mentions in the surrounding module weigh less than those in its class or function.
    """
    wanted = frozenset(names)
    homes = {(benchmark.module, benchmark.owner or benchmark.attribute) for benchmark in benchmarks}
    words = {(module, name): wanted & _words(getattr(module, name)) for module, name in homes}
    own = [words[benchmark.module, benchmark.owner or benchmark.attribute] for benchmark in benchmarks]
    around = {module: wanted & _words(module) for module in {benchmark.module for benchmark in benchmarks}}
    uses = collections.Counter(name for spoken in own for name in spoken)
    uses.update(name for benchmark in benchmarks for name in around[benchmark.module])

    def score(place: int) -> float:
        near = sum(1 / uses[name] for name in own[place])
        return near + sum(1 / uses[name] for name in around[benchmarks[place].module]) / len(benchmarks)

    places = sorted(range(len(benchmarks)), key=lambda place: -score(place))
    counts = [suite.combinations(benchmark.definition) for benchmark in benchmarks]
    first = [(benchmarks[place], 0) for place in places if counts[place]]
    return first + [(benchmarks[place], index) for place in places for index in range(1, counts[place])]


def _words(thing: Any) -> frozenset[str]:
    """Return every identifier in the source of *thing*; none without a source."""
    try:
        return frozenset(_WORD.findall(inspect.getsource(thing)))
    except Exception:  # noqa: BLE001 - source that is not there or not readable costs only a place in the order
        return frozenset()
