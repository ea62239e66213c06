"""Lists the benchmarks, and checks for each that it runs, and which code the timed call runs."""

from __future__ import annotations

import importlib
import importlib.machinery
import mmap
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from . import suite
from .caches import CacheFolders
from .child import Answer, in_child
from .compiled.native import NativeWatch
from .lines import LineWatch
from .order import FoundBenchmark, in_order_of_relevance
from .profiles import OVERHEAD
from .proofs import described, parts_of, witness
from .results import returned

if TYPE_CHECKING:
    from types import FrameType, ModuleType

    from .answers import Emit

PROBE_ROUNDS = 3
BATCHED_BELOW_SECONDS = 0.01
STATE_NOISE_SECONDS = 20e-6
TRACED_FACTOR = 20
"""How many times as long a traced call may take: of a longer one it is certain that its calls are not batched."""
STANDARD_LIBRARY = "/lib-dynload/"
"""Folder of its compiled modules, whose names packages use for their own: `_json`, `array`, `math`."""


ALL, RELEVANT, NONE = "all", "relevant", "none"


class BenchmarkFacts(NamedTuple):
    """Facts about a benchmark in addition to its executed lines."""

    results: bool
    state: str
    """The benchmarks to test for state between calls: ALL, RELEVANT to the change, or NONE."""
    parts: int
    """Numbers to report of each value that the call computes, returned or not; 0 reports none of them."""


class ImportTimeoutError(BaseException):
    """A module took too long to import. No `except Exception` of the module can swallow this."""


def survey(request: dict[str, Any], emit: Emit) -> None:
    """List the suite's benchmarks (`only` those named, if any are) and run each once, until the time is used up.

    Those that mention `names` come first, then further combinations of those that ran one of `lines`, and those
    `ruled_out` are not run. Only those of a `share` are listed: its number, and how many there are. If `enough` is a
    number it stops after as many ran, but not before one of them ran one of `lines`, if there are any. A setup of a
    class that takes longer than the limit is run once for each combination: the time is for the others. State between
    calls is reported for benchmarks that run one of the lines, or for all if there are none: it takes several setups.
    """
    if request.get("closed"):
        # this process, and the fork that runs one benchmark
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
    left, lines = request["enough"], request["lines"]
    seek, ruled_out = bool(lines), frozenset(request["ruled_out"])
    asked = BenchmarkFacts(bool(request["results"]), _of_state(request), int(request.get("parts", 0)))
    limit = float(request["limit"])
    only = None if request["only"] is None else frozenset(request["only"])
    share, shares = request.get("share", (0, 1))
    native = NativeWatch(request["coverage"], request["compiled"], request["checkout"])
    modules = import_all(request["root"], frozenset(request["skip"]), float(request["import_limit"]), emit)
    emit(event="extensions", names=_extension_modules())
    untimed: list[str] = []
    benchmarks = [
        FoundBenchmark(module, *benchmark)
        for module in modules
        for benchmark in suite.benchmarks_of(
            module, lambda name, message: emit(event="lost", name=name, message=message), untimed.append
        )
        if (only is None or any(name.startswith(benchmark[2].name) for name in only))
        and _share_of(benchmark[2], shares) == share
    ]
    emit(event="untimed", names=untimed)
    emit(event="uninstalled", names=request["uninstalled"])
    emit(event="seen", names=native.find())
    # imports are not in the budget: on a busy machine nothing would be left of it to run a benchmark with
    deadline = time.monotonic() + float(request["budget"])
    caches = CacheFolders()
    executing: set[FoundBenchmark] = set()
    slow: dict[tuple[ModuleType, str, int, float], Answer] = {}
    is_set_up = mmap.mmap(-1, 1)
    for found, index in in_order_of_relevance(benchmarks, request["names"], executing):
        module, owner, attribute, benchmark = found
        name = suite.label(benchmark, index)
        if only is not None and name not in only:
            continue
        timeout = min(limit, float(benchmark.timeout or limit))
        folder = ""
        answer: Answer = {"outcome": "ruled_out" if name in ruled_out else "untraced"}
        if name not in ruled_out and time.monotonic() < deadline and (left is None or left > 0 or seek):
            folder, answer = caches.fill(benchmark, limit)
            watch = LineWatch(lines)
            # the author's timeout is for calls that nothing slows
            allowed = min(limit, OVERHEAD * timeout) if watch.is_slow else timeout
            prepared = module, owner, index, timeout
            if answer["outcome"] == "ran" and prepared in slow:
                answer = slow[prepared]
            elif answer["outcome"] == "ran":
                is_set_up[0] = 0
                answer = _run_once(benchmark, index, folder, (watch, native), allowed, asked, is_set_up)
                if answer["outcome"] == "timeout" and owner and not is_set_up[0]:
                    message = "not run, since {} was {}, in the setup of its class".format(name, answer["message"])
                    slow[prepared] = {**answer, "message": message}
            if answer.get("lines"):
                executing.add(found)
            if left is not None and answer["outcome"] == "ran":
                left -= 1
                seek = seek and not answer.get("lines")
        emit(
            event="benchmark",
            name=name,
            module=module.__name__,
            owner=owner,
            attribute=attribute,
            index=index,
            metric=suite.metric_of(benchmark),
            unit=str(benchmark.unit),
            timeout=timeout,
            cache_folder=folder,
            **answer,
        )


def import_all(root: str, skip: frozenset[str], seconds: float, emit: Emit) -> list[ModuleType]:
    """Import every module of the suite; one that fails is reported by name and takes no other with it."""

    def on_alarm(_signal: int, _frame: FrameType | None) -> None:
        raise ImportTimeoutError(f"still importing after {seconds:.0f} s")

    signal.signal(signal.SIGALRM, on_alarm)
    pending, modules = [os.path.basename(root)], []
    while pending:
        name = pending.pop(0)
        if name in skip:
            continue
        emit(event="importing", name=name)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            module = importlib.import_module(name)
        except BaseException:  # noqa: BLE001 - an import may raise anything, SystemExit included
            emit(event="lost", name=name, message=suite.failure_message())
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        modules.append(module)
        pending += [submodules.name for submodules in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}.")]
    return modules


def _share_of(benchmark: suite.RunnableBenchmark, shares: int) -> int:
    """Return the share of the suite that *benchmark* is in: one session has all that `setup_cache` keeps."""
    return 0 if benchmark.setup_cache_key else zlib.crc32(benchmark.name.encode()) % shares


def _extension_modules() -> list[str]:
    """Names of the compiled modules that are loaded, but for those of the standard library."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    files = {name: str(getattr(module, "__file__", "")) for name, module in list(sys.modules.items())}
    return sorted(name for name, file in files.items() if file.endswith(suffixes) and STANDARD_LIBRARY not in file)


def _run_once(
    benchmark: suite.RunnableBenchmark,
    index: int,
    cache_folder: str,
    watches: tuple[LineWatch, NativeWatch],
    timeout: float,
    asked: BenchmarkFacts,
    is_set_up: mmap.mmap,
) -> Answer:
    folder = tempfile.mkdtemp(prefix="fc-work-")

    def work() -> Answer:
        os.chdir(folder)
        suite.prepare(benchmark, index, cache_folder)
        return _trace(benchmark, *watches, asked, is_set_up)

    try:
        return in_child(work, timeout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _of_state(request: dict[str, Any]) -> str:
    """Return the benchmarks to test for state between calls: those that this survey may select for timing."""
    if request["results"] or request["compiled"]:
        return NONE
    return RELEVANT if request["lines"] else ALL


def _trace(
    benchmark: suite.RunnableBenchmark,
    watch: LineWatch,
    native: NativeWatch,
    asked: BenchmarkFacts,
    is_set_up: mmap.mmap,
) -> Answer:
    """Run the benchmark once: report its executed lines among those watched, its duration, and how to time it.

    If results are *asked* for, its return value is reported too, in comparable form.
    """
    skipped: Answer = {"outcome": "skipped"}
    metric = suite.metric_of(benchmark)
    began = time.process_time()
    if benchmark.do_setup():
        return skipped
    setup = time.process_time() - began
    # seen by the process that waits for this one
    is_set_up[0] = 1
    try:
        arguments = suite.arguments(benchmark)
        if suite.is_raw(benchmark):
            seconds = benchmark._get_timer(*arguments).timeit(1)
            return {"outcome": "ran", "seconds": seconds, "setup_seconds": setup, "traceable": False}
        native.start()
        watch.start()
        try:
            seconds, result, parts = _clock(benchmark, arguments, witnessed=bool(asked.parts))
        finally:
            watch.stop()
        lines = {**watch.executed(), **native.executed()}
        isolate = False
        is_asked = asked.state == ALL or (asked.state == RELEVANT and bool(lines))
        is_asked = is_asked and bool(benchmark._setups) and metric == "time" and benchmark.number == 0
        if is_asked and _is_short(benchmark, seconds, watch.is_slow):
            isolate = _depends_on_state(benchmark)
    except NotImplementedError:
        return skipped
    finally:
        benchmark.do_teardown()
    # the patch may change a tracked value
    told: Answer = {"returned": returned(result)} if asked.results and metric != "track" else {}
    if asked.parts and metric != "track":
        told["proof"] = described(parts, asked.parts)
    timing = {"seconds": seconds, "setup_seconds": setup, "isolate": isolate}
    return {"outcome": "ran", **timing, "traceable": True, "lines": lines, **told}


def _clock(
    benchmark: suite.RunnableBenchmark, arguments: tuple[object, ...], *, witnessed: bool = False
) -> tuple[float, object, list[tuple[str, object]]]:
    """Seconds of a call, its result, and if it is *witnessed*, each value that it computes."""
    function = witness(benchmark.func) if witnessed else None
    call = function or benchmark.func
    start = time.perf_counter()
    result = call(*arguments)
    seconds = time.perf_counter() - start
    if function is None:
        return seconds, result, [("", result)]
    parts = parts_of(result, function)
    return seconds, parts[0][1], parts


def _is_short(benchmark: suite.RunnableBenchmark, seconds: float, is_slowed: bool) -> bool:
    """Return True if calls are batched for their duration, *seconds*; what tracing slowed is clocked again."""
    if is_slowed and BATCHED_BELOW_SECONDS <= seconds < TRACED_FACTOR * BATCHED_BELOW_SECONDS:
        benchmark.do_teardown()
        benchmark.do_setup()
        seconds = _clock(benchmark, suite.arguments(benchmark))[0]
    return seconds < BATCHED_BELOW_SECONDS


def _depends_on_state(benchmark: suite.RunnableBenchmark) -> bool:
    """Return True if a call without a fresh setup differs from the first: it sorts in place, pops, fills a cache …"""
    first: list[float] = []
    second: list[float] = []
    for _ in range(PROBE_ROUNDS):
        benchmark.do_teardown()
        benchmark.do_setup()
        arguments = suite.arguments(benchmark)
        first.append(_clock(benchmark, arguments)[0])
        try:
            second.append(_clock(benchmark, arguments)[0])
        except Exception:  # noqa: BLE001 - that it fails, in whatever way, is the answer
            return True
    early, late = suite.median(first), suite.median(second)
    return max(early, late) > 2 * min(early, late) + STATE_NOISE_SECONDS
