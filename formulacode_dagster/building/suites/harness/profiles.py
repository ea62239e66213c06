"""Where the time of a benchmark goes, and how many instructions its calls take: each in a separate fork."""

from __future__ import annotations

import inspect
import os
import shutil
import sysconfig
import tempfile
import time
from typing import TYPE_CHECKING, Any

from . import suite
from .child import Answer, in_child
from .lines import INSTALLED
from .timing import load_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from .answers import Emit

LEAST_SECONDS = 0.1
"""Short calls are profiled for so long: a share of one of them is noise."""
SETUPS_SECONDS = 2.0
"""Seconds after which a benchmark that needs a setup for each call is not set up again."""
OVERHEAD = 5
"""Limit of a benchmark as a multiple of its timeout: it is called at least twice, and the profiler slows it."""
LEAST_SHARE = 0.01
MOST_FUNCTIONS = 10
MOST_SOURCE = 6000
"""Limit of a benchmark's source in characters; longer ones are data written as code."""
PROFILER = "_lsprof."
"""Marker in the names of the profiler's own functions."""


def profile_all(request: dict[str, Any], emit: Emit) -> None:
    """Profile every one of `benchmarks`, in order, until `budget` seconds are used up; then report their sources."""
    sources: dict[str, str] = {}
    for asked, benchmark, left in asked_benchmarks(request):
        name = asked["name"].partition("(")[0]
        sources.setdefault(name.rpartition(".")[0] if asked["owner"] else name, _source(benchmark))
        if left <= 0 or suite.is_raw(benchmark):
            continue

        def work(benchmark: suite.RunnableBenchmark = benchmark, asked: dict[str, Any] = asked) -> Answer:
            hot = _hot(benchmark, is_called_once(benchmark, asked), request["checkout"], request["root"])
            return {"outcome": "profiled", "functions": hot}

        emit(event="profile", benchmark=asked["name"], **in_folder_of_its_own(work, benchmark, asked, left))
    for name, source in sources.items():
        emit(event="source", name=name, source=source)


def count_all(request: dict[str, Any], emit: Emit) -> None:
    """Count the instructions of a call of every one of `benchmarks`, in order, until `budget` seconds are used up.

    This process runs under callgrind, which writes what it counted into a file named `counts`, the process and a number
    whenever `getppid` is called, and begins again.
    """
    counts = os.path.abspath(request["counts"])
    for asked, benchmark, left in asked_benchmarks(request):
        if left <= 0 or suite.is_raw(benchmark):
            continue

        def work(benchmark: suite.RunnableBenchmark = benchmark) -> Answer:
            return {"outcome": "counted", "instructions": _instructions(benchmark, f"{counts}.{os.getpid()}")}

        emit(event="count", benchmark=asked["name"], **in_folder_of_its_own(work, benchmark, asked, left))


def _instructions(benchmark: suite.RunnableBenchmark, counts: str) -> int:
    """Instructions of one call of *benchmark*, by the files that are named *counts* and a number."""
    folder, name = os.path.split(counts)
    before: set[int] = set()

    def numbers() -> set[int]:
        return {int(file[len(name) + 1 :]) for file in os.listdir(folder) if file.startswith(f"{name}.")}

    def call(arguments: tuple[object, ...]) -> bool:
        before.update(numbers())
        os.getppid()
        benchmark.func(*arguments)
        os.getppid()
        return False

    call_warmed(benchmark, True, call)
    # the first holds what came before the call
    _, *counted = sorted(numbers() - before)
    return sum(_total(f"{counts}.{number}") for number in counted)


def _total(path: str) -> int:
    with open(path) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def asked_benchmarks(request: dict[str, Any]) -> Iterator[tuple[dict[str, Any], suite.RunnableBenchmark, float]]:
    """Yield the requested existing ones, each with the seconds left of `budget`."""
    deadline = time.monotonic() + float(request["budget"])
    modules: dict[str, Any] = {}
    for asked in request["benchmarks"]:
        if asked["module"] not in modules:
            modules[asked["module"]] = load_module(asked["module"])
        benchmarks = modules[asked["module"]]
        benchmark = None if isinstance(benchmarks, str) else benchmarks.get((asked["owner"], asked["attribute"]))
        if benchmark is not None:
            yield asked, benchmark, deadline - time.monotonic()


def in_folder_of_its_own(
    work: Callable[[], Answer], benchmark: suite.RunnableBenchmark, asked: dict[str, Any], left: float
) -> Answer:
    """Answer of *work* in a fork, with the *benchmark* prepared as it is *asked* for; at most *left* seconds."""
    folder = tempfile.mkdtemp(prefix="fc-work-")

    def prepared() -> Answer:
        os.chdir(folder)
        suite.prepare(benchmark, int(asked["index"]), asked["cache_folder"])
        return work()

    try:
        return in_child(prepared, min(left, OVERHEAD * float(asked["timeout"])))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_called_once(benchmark: suite.RunnableBenchmark, asked: dict[str, Any]) -> bool:
    """Return True if a call leaves state that changes the next, so that each call needs a setup."""
    return bool(asked["isolate"]) or benchmark.number == 1


def call_warmed(benchmark: suite.RunnableBenchmark, once: bool, call: Callable[[tuple[object, ...]], bool]) -> None:
    """*call* with its arguments while that asks for more; with *once* each time after a setup, for `SETUPS_SECONDS`.

    A warm-up call is ignored: compilation, imports and caching in it do not affect the others.
    """
    is_warm, is_more, deadline = False, True, time.monotonic() + SETUPS_SECONDS
    while is_more and not benchmark.do_setup():
        try:
            arguments = suite.arguments(benchmark)
            if not is_warm:
                benchmark.func(*arguments)
                is_warm = True
                continue
            is_more = call(arguments)
            while is_more and not once:
                is_more = call(arguments)
            is_more = is_more and time.monotonic() < deadline
        finally:
            benchmark.do_teardown()


def _hot(benchmark: suite.RunnableBenchmark, once: bool, checkout: str, root: str) -> list[dict[str, object]]:
    """The functions in which most of the time of its calls is spent, the suite's own left out; shares of that time."""
    # most interpreters of an image never need it
    import cProfile

    profiler, seconds = cProfile.Profile(), 0.0

    def call(arguments: tuple[object, ...]) -> bool:
        nonlocal seconds
        started = time.perf_counter()
        profiler.runcall(benchmark.func, *arguments)
        seconds += time.perf_counter() - started
        return seconds < LEAST_SECONDS

    call_warmed(benchmark, once, call)
    if not seconds:
        return []
    functions = [
        {
            "file": file,
            "function": entry.code if isinstance(entry.code, str) else name_of(entry.code),
            "line": 0 if isinstance(entry.code, str) else entry.code.co_firstlineno,
            "own": round(min(1.0, entry.inlinetime / seconds), 4),
            "cumulative": round(min(1.0, entry.totaltime / seconds), 4),
        }
        for entry in profiler.getstats()
        for file in ["" if isinstance(entry.code, str) else below(entry.code.co_filename, checkout)]
        if (
            PROFILER not in entry.code
            if isinstance(entry.code, str)
            else not os.path.abspath(entry.code.co_filename).startswith(f"{root}/")
        )
    ]
    functions = [function for function in functions if _share(function, "cumulative") >= LEAST_SHARE]
    for key in ("cumulative", "own"):
        functions.sort(key=lambda function: -_share(function, key))
    return functions[:MOST_FUNCTIONS]


def _share(function: dict[str, object], key: str) -> float:
    return float(str(function[key]))


def name_of(code: CodeType) -> str:
    """Its name, with its class from CPython 3.11 on."""
    return str(getattr(code, "co_qualname", code.co_name))


def below(file: str, checkout: str) -> str:
    """*file* without the folder it is installed or checked out in."""
    for marker in INSTALLED:
        _, separator, installed = file.rpartition(marker)
        if separator:
            return installed
    for folder in (checkout, sysconfig.get_paths()["stdlib"]):
        if file.startswith(f"{folder}/"):
            return file[len(folder) + 1 :]
    return os.path.basename(file)


def _source(benchmark: suite.RunnableBenchmark) -> str:
    """Return the class or function of the benchmark; empty if it has no source, or too long a one."""
    function = inspect.unwrap(benchmark.func)
    try:
        owner = getattr(function, "__self__", None)
        source = inspect.getsource(type(owner) if owner is not None else function)
    except (OSError, TypeError):
        return ""
    return source if len(source) <= MOST_SOURCE else ""
