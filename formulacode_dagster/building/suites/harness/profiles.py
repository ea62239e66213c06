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
from .timing import asked_of, load_module

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
DUMP_STATS, START_INSTRUMENTATION, STOP_INSTRUMENTATION = 0x43540000, 0x43540004, 0x43540005
"""Requests to callgrind, of its header `callgrind.h`."""
CLIENT_REQUEST = {
    "x86_64": "4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3",
    "aarch64": "e40300aa 030080d2 8c0dcc93 8c35cc93 8ccdcc93 8cf5cc93 4a010aaa e00303aa c0035fd6",
}
"""Machine code of a function of the address of a request's words: valgrind knows the instructions without effect."""
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

    This process runs under callgrind, which counts nothing until it is asked to, and writes what it counted into files
    named `counts`, the process and a number.
    """
    counts = os.path.abspath(request["counts"])
    for asked, benchmark, left in asked_benchmarks(request):
        if left <= 0 or suite.is_raw(benchmark):
            continue

        def work(benchmark: suite.RunnableBenchmark = benchmark) -> Answer:
            return {"outcome": "counted", "instructions": _instructions(benchmark, f"{counts}.{os.getpid()}")}

        emit(event="count", benchmark=asked["name"], **in_folder_of_its_own(work, benchmark, asked, left))


def _instructions(benchmark: suite.RunnableBenchmark, counts: str) -> int:
    """Instructions of one call of *benchmark*, by the first file that is named *counts* and a number."""
    ask = _client_requests()

    def call(arguments: tuple[object, ...]) -> bool:
        ask(START_INSTRUMENTATION)
        benchmark.func(*arguments)
        ask(DUMP_STATS)
        ask(STOP_INSTRUMENTATION)
        return False

    call_warmed(benchmark, True, call)
    with open(f"{counts}.1") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def _client_requests() -> Callable[[int], object]:
    """Return a function that sends a request to valgrind, as the macros of its header `valgrind.h` do.

    Raises KeyError for another architecture than those.
    """
    # most interpreters of an image never need them
    import ctypes
    import mmap
    import platform

    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex(CLIENT_REQUEST[platform.machine()]))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    send = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(address)

    # the code must remain as long as the function
    def ask(request: int, _code: mmap.mmap = code) -> None:
        words = (ctypes.c_size_t * 6)(request)
        send(ctypes.addressof(words))

    return ask


def asked_benchmarks(request: dict[str, Any]) -> Iterator[tuple[dict[str, Any], suite.RunnableBenchmark, float]]:
    """Yield the requested existing ones, each with the seconds left of `budget`."""
    # the start of this process counts: under a tool it may take longer than all the rest
    deadline = time.monotonic() - time.process_time() + float(request["budget"])
    modules: dict[str, Any] = {}
    wanted = asked_of(request)
    for asked in request["benchmarks"]:
        if asked["module"] not in modules:
            modules[asked["module"]] = load_module(asked["module"], wanted[asked["module"]])
        benchmarks = modules[asked["module"]]
        benchmark = None if isinstance(benchmarks, str) else benchmarks.get((asked["owner"], asked["attribute"]))
        if benchmark is None:
            continue
        index = suite.index_of(benchmark, asked["name"], int(asked["index"]))
        if index is not None:
            yield {**asked, "index": index}, benchmark, deadline - time.monotonic()


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
