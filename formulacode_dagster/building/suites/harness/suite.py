"""The repository's benchmarks, as asv_runner understands them."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import traceback
from typing import TYPE_CHECKING, Any, Callable  # noqa: UP035 - CPython 3.7 evaluates the alias below

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import ModuleType
    from typing import Protocol
else:
    Protocol = object  # came with CPython 3.8

MESSAGE_CHARACTERS = 2000
METRICS = frozenset({"time", "peakmemory", "memory", "track"})
"""Metrics, in asv's words for the types of its benchmarks."""

Report = Callable[[str, str], None]
"""Called with the name of something that was lost, and why."""


class Timer(Protocol):
    """The interface of `timeit.Timer`, and of asv_runner's timer of separate processes."""

    def timeit(self, number: int) -> float:
        """Seconds that *number* calls took."""


class RunnableBenchmark(Protocol):
    """Used part of asv_runner's benchmarks, the same from 0.1 to 0.3; timing attributes belong to `TimeBenchmark`."""

    name: str
    type: str
    unit: str
    func: Callable[..., object]
    params: list[list[str]]
    param_names: list[str]
    code: str
    version: str
    number: int
    repeat: Any
    min_run_count: int
    warmup_time: float
    sample_time: float
    timeout: float | None
    setup_cache_key: str | None
    _setups: list[Callable[..., object]]
    _current_params: tuple[object, ...]
    _redo_setup_next: bool

    def set_param_idx(self, param_idx: int) -> None:
        """Choose a combination of parameters."""

    def insert_param(self, param: object) -> None:
        """Put the result of `setup_cache` before the parameters."""

    def do_setup(self) -> bool:
        """Run the setups; True when the combination is skipped."""

    def do_teardown(self) -> None:
        """Run the teardowns."""

    def do_setup_cache(self) -> object:
        """Run `setup_cache`."""

    def run(self, *param: object) -> object:
        """The benchmark's value, if it times nothing."""

    def _get_timer(self, *param: object) -> Timer:
        """The timer that calls the benchmark."""

    def benchmark_timing(
        self,
        timer: Timer,
        min_repeat: int,
        max_repeat: int,
        max_time: float,
        warmup_time: float,
        number: int,
        min_run_count: int,
    ) -> tuple[list[float], int]:
        """Timings of batches, and the calls in each batch."""


def failure_message() -> str:
    """The end of the traceback of the exception being handled."""
    return traceback.format_exc()[-MESSAGE_CHARACTERS:]


def benchmarks_of(
    module: ModuleType,
    lost: Report,
    untimed: Callable[[str], object] | None = None,
    only: Collection[tuple[str, str]] | None = None,
) -> Iterator[tuple[str, str, RunnableBenchmark]]:
    """Yield (class or '', attribute, benchmark) of every benchmark; a class that cannot be made is *lost*.

    *untimed* is called with the names of those of a kind that is not measured, which plug-ins bring. With *only* no
    others are made: each takes an instance of its class, and its source.
    """
    owners = None if only is None else {owner or attribute for owner, attribute in only}
    build = importlib.import_module("asv_runner.discovery")._get_benchmark
    for name, value in list(vars(module).items()):
        if name.startswith("_") or (owners is not None and name not in owners):
            continue
        owner, members = "", []
        if inspect.isclass(value) and not inspect.isabstract(value):
            owner, members = name, inspect.getmembers(value, _is_callable_code)
        elif inspect.isfunction(value):
            members = [(name, value)]
        for attribute, function in members:
            if only is not None and (owner, attribute) not in only:
                continue
            try:
                benchmark = build(attribute, module, value if owner else None, function)
            except BaseException:  # noqa: BLE001 - a suite's constructor may raise anything; only its class is lost
                lost(f"{module.__name__}.{owner or attribute}", failure_message())
                break
            if benchmark is not None and metric_of(benchmark) in METRICS:
                yield owner, attribute, benchmark
            elif benchmark is not None and untimed is not None:
                untimed(benchmark.name)


def _is_callable_code(value: object) -> bool:
    return inspect.isfunction(value) or inspect.ismethod(value)


def metric_of(benchmark: RunnableBenchmark) -> str:
    """Its metric; the `type` of a tracked value is set by its author, and says nothing."""
    return "track" if type(benchmark).__name__ == "TrackBenchmark" else benchmark.type


def combinations(benchmark: RunnableBenchmark) -> int:
    """Number of parameter combinations of the benchmark; 1 without parameters."""
    count = 1
    for values in benchmark.params:
        count *= len(values)
    return count


def label(benchmark: RunnableBenchmark, index: int) -> str:
    """Asv's name of one combination: `module.Class.time_it(10, 'a')`."""
    if not benchmark.params:
        return benchmark.name
    chosen = next(itertools.islice(itertools.product(*benchmark.params), index, None))
    return f"{benchmark.name}({', '.join(chosen)})"


def index_of(benchmark: RunnableBenchmark, name: str, index: int) -> int | None:
    """Return the index of the combination *name*, which was *index* in another process; None if there is none.

    Parameters that are made of a set have another order with each seed of hashes.
    """
    indexes = range(combinations(benchmark))
    if index in indexes and label(benchmark, index) == name:
        return index
    return next((other for other in indexes if label(benchmark, other) == name), None)


def is_raw(benchmark: RunnableBenchmark) -> bool:
    """True for a `timeraw_` benchmark: its function returns code that runs in a separate process."""
    return type(benchmark).__name__ == "TimerawBenchmark"


def prepare(benchmark: RunnableBenchmark, index: int, cache_folder: str) -> None:
    """Choose the parameters; with a cache, load it and work in its folder, as asv does."""
    if benchmark.params:
        benchmark.set_param_idx(index)
    if not cache_folder:
        return
    import pickle

    os.chdir(cache_folder)
    with open("cache.pickle", "rb") as file:
        cache = pickle.load(file)  # noqa: S301 - this suite's own setup_cache wrote it in this session
    set_cache = getattr(benchmark, "set_cache", None)
    if set_cache is not None:
        set_cache(cache)
    elif cache is not None:
        benchmark.insert_param(cache)


def median(values: list[float]) -> float:
    """The middle one of *values*, at least one; as `statistics.median`, whose module takes long to import."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def arguments(benchmark: RunnableBenchmark) -> tuple[object, ...]:
    """Arguments of the benchmark: the cache, if it has one, and the parameters."""
    build = getattr(benchmark, "_build_params", None)
    return tuple(build()) if build is not None else tuple(benchmark._current_params)
