"""Where the time of a benchmark goes: calls of each under cProfile, in a fork of its own."""

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
    from types import CodeType

    from .answers import Emit

LEAST_SECONDS = 0.1
"""Short calls are profiled for so long: a share of one of them is noise."""
OVERHEAD = 5
"""How many times its timeout a benchmark may take: it is called twice at least, and the profiler slows it."""
LEAST_SHARE = 0.01
MOST_FUNCTIONS = 10
MOST_SOURCE = 6000
"""Characters of a benchmark's source; what is longer is data written as code."""
PROFILER = "_lsprof."
"""In the names of the profiler's own functions."""


def profile_all(request: dict[str, Any], emit: Emit) -> None:
    """Profile every one of `benchmarks`, in order, until `budget` seconds are used up; then tell their sources."""
    deadline = time.monotonic() + float(request["budget"])
    modules: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for asked in request["benchmarks"]:
        if asked["module"] not in modules:
            modules[asked["module"]] = load_module(asked["module"])
        benchmarks = modules[asked["module"]]
        benchmark = None if isinstance(benchmarks, str) else benchmarks.get((asked["owner"], asked["attribute"]))
        if benchmark is None:
            continue
        name = asked["name"].partition("(")[0]
        sources.setdefault(name.rpartition(".")[0] if asked["owner"] else name, _source(benchmark))
        left = deadline - time.monotonic()
        if left <= 0 or suite.is_raw(benchmark):
            continue
        emit(event="profile", benchmark=asked["name"], **_profiled(benchmark, asked, request, left))
    for name, source in sources.items():
        emit(event="source", name=name, source=source)


def _profiled(benchmark: suite.Benchmark, asked: dict[str, Any], request: dict[str, Any], left: float) -> Answer:
    folder = tempfile.mkdtemp(prefix="fc-work-")

    def work() -> Answer:
        os.chdir(folder)
        suite.prepare(benchmark, int(asked["index"]), asked["cache_folder"])
        once = bool(asked["isolate"]) or benchmark.number == 1
        return {"outcome": "profiled", "functions": _hot(benchmark, once, request["checkout"], request["root"])}

    try:
        return in_child(work, min(left, OVERHEAD * float(asked["timeout"])))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hot(benchmark: suite.Benchmark, once: bool, checkout: str, root: str) -> list[dict[str, object]]:
    """The functions in which most of the time of its calls is spent, the suite's own left out; shares of that time.

    A call before them is not looked at: what is compiled, imported or cached then is no part of the others. With *once*
    a call leaves a state that changes the next, so there is one behind each setup.
    """
    # most interpreters of an image never need it
    import cProfile

    profiler, seconds = cProfile.Profile(), 0.0
    for is_first in (True, False):
        if benchmark.do_setup():
            return []
        try:
            arguments = suite.arguments(benchmark)
            if is_first:
                benchmark.func(*arguments)
                continue
            while True:
                started = time.perf_counter()
                profiler.runcall(benchmark.func, *arguments)
                seconds += time.perf_counter() - started
                if once or seconds >= LEAST_SECONDS:
                    break
        finally:
            benchmark.do_teardown()
    functions = [
        {
            "file": file,
            "function": entry.code if isinstance(entry.code, str) else _name(entry.code),
            "line": 0 if isinstance(entry.code, str) else entry.code.co_firstlineno,
            "own": round(min(1.0, entry.inlinetime / seconds), 4),
            "cumulative": round(min(1.0, entry.totaltime / seconds), 4),
        }
        for entry in profiler.getstats()
        for file in ["" if isinstance(entry.code, str) else _below(entry.code.co_filename, checkout)]
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


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _below(file: str, checkout: str) -> str:
    """*file* without the folder it is installed or checked out in."""
    for marker in INSTALLED:
        _, separator, installed = file.rpartition(marker)
        if separator:
            return installed
    for folder in (checkout, sysconfig.get_paths()["stdlib"]):
        if file.startswith(f"{folder}/"):
            return file[len(folder) + 1 :]
    return os.path.basename(file)


def _source(benchmark: suite.Benchmark) -> str:
    """The class or function that the benchmark is; empty where it was not written down, or is too long to read."""
    function = inspect.unwrap(benchmark.func)
    try:
        owner = getattr(function, "__self__", None)
        source = inspect.getsource(type(owner) if owner is not None else function)
    except (OSError, TypeError):
        return ""
    return source if len(source) <= MOST_SOURCE else ""
