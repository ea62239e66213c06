"""Samples of one process: modules imported once, and each benchmark timed in a separate fork."""

from __future__ import annotations

import importlib
import math
import os
import resource
import shutil
import signal
import tempfile
import time
from typing import TYPE_CHECKING, Any

from . import clocks, suite
from .caches import CacheFolders
from .child import Answer, in_child
from .conditions import CoreWatch, machine, pin
from .own_time import own_time
from .proofs import KeptCall

if TYPE_CHECKING:
    from .answers import Emit

MAX_REPEATS = 1000
ASV_BATCH_SECONDS = 0.01
"""Duration to which asv batches short calls by default."""
BATCH_SECONDS = 0.001
"""Shorter than a scheduler's time slice, so that some batches are undisturbed on a busy machine too."""
LEAST_BATCHES = 4
MOST_FACTOR = 2
"""Limit of a sample as a multiple of its timing's, setups included, unless it has too few batches by then."""
HEAP_BYTES = 64
"""Bytes by which a step of `padding` moves later heap allocations."""


def time_all(request: dict[str, Any], emit: Emit) -> None:
    """Sample every one of `benchmarks`, in order, each once; report the result and the machine's activity."""
    described = machine()
    core = pin(int(request["core"]))
    if request.get("closed"):
        # this process, and the fork that is timed
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
    if request["build"]:
        from . import builds

        builds.lay(request["build"])
    # Held until the end: where the heap starts is part of a layout, as is where the stack does.
    padding = bytearray(HEAP_BYTES * int(request["padding"]))
    watch = CoreWatch(core)
    watched = clocks.watched()
    # all of them before the first fork: later imports would add to the memory of only some
    modules = {module: load_module(module, asked) for module, asked in sorted(asked_of(request).items())}
    caches = CacheFolders()
    for place, asked in enumerate(request["benchmarks"]):
        started = time.monotonic()
        answer = _sample(asked, modules, watched, {**request, "place": place}, caches, emit)
        emit(event="sample", place=place, **answer, wall=time.monotonic() - started)
    emit(event="conditions", machine=described, **watch.conditions())
    del padding


def _sample(
    asked: dict[str, Any],
    modules: dict[str, dict[tuple[str, str], suite.RunnableBenchmark] | str],
    watched: clocks.Watched,
    request: dict[str, Any],
    caches: CacheFolders,
    emit: Emit,
) -> Answer:
    benchmarks = modules[asked["module"]]
    if isinstance(benchmarks, str):
        return {"outcome": "error", "message": benchmarks}
    benchmark = benchmarks.get((asked["owner"], asked["attribute"]))
    index = None if benchmark is None else suite.index_of(benchmark, asked["name"], int(asked["index"]))
    if benchmark is None or index is None:
        return {"outcome": "missing", "message": "not defined here, or with other parameters"}
    cached = _cached(benchmark, asked, caches)
    if cached["outcome"] != "ran":
        return cached
    asked = {**asked, "index": index, "cache_folder": cached["folder"]}
    folder = tempfile.mkdtemp(prefix="fc-work-")
    try:
        return in_child(
            lambda: {**_timed(benchmark, asked, folder, request, emit), "tampered": clocks.changed(watched)},
            float(asked["timeout"]),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _cached(benchmark: suite.RunnableBenchmark, asked: dict[str, Any], caches: CacheFolders) -> Answer:
    """Folder of the benchmark's `setup_cache`, filled here if the survey's is gone."""
    folder = asked["cache_folder"]
    if not folder or os.path.isdir(folder):
        return {"outcome": "ran", "folder": folder}
    found, answer = caches.fill(benchmark, float(asked["timeout"]))
    return {**answer, "folder": found}


def asked_of(request: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """Return (class or '', attribute) of the requested benchmarks, by module."""
    modules: dict[str, set[tuple[str, str]]] = {}
    for asked in request["benchmarks"]:
        modules.setdefault(asked["module"], set()).add((asked["owner"], asked["attribute"]))
    return modules


def load_module(name: str, asked: set[tuple[str, str]]) -> dict[tuple[str, str], suite.RunnableBenchmark] | str:
    """Return the benchmarks *asked* for of a module, or why it cannot be imported."""
    errors: list[str] = []
    try:
        module = importlib.import_module(name)
        defined = suite.benchmarks_of(module, lambda _name, message: errors.append(message), only=asked)
        benchmarks = {(owner, attribute): benchmark for owner, attribute, benchmark in defined}
    except BaseException:  # noqa: BLE001 - an import may raise anything, SystemExit included
        return suite.failure_message()
    return benchmarks or "\n".join(errors) or "no benchmark is defined here"


def _timed(
    benchmark: suite.RunnableBenchmark, asked: dict[str, Any], folder: str, request: dict[str, Any], emit: Emit
) -> Answer:
    seconds, place = float(request["seconds"]), request["place"]
    os.chdir(folder)
    try:
        suite.prepare(benchmark, int(asked["index"]), asked["cache_folder"])
        if benchmark.do_setup():
            return {"outcome": "skipped", "message": "the benchmark skips these parameters"}
        # the same for all arms: first calls after a setup are slower, and a batch has one
        setup = float(asked["setup_seconds"])
        if suite.metric_of(benchmark) != "time":
            try:
                return _valued(benchmark)
            finally:
                benchmark.do_teardown()
        if benchmark.sample_time == ASV_BATCH_SECONDS:
            # each batch has a setup, which is not to take most of the time
            benchmark.sample_time = min(max(BATCH_SECONDS, setup), ASV_BATCH_SECONDS)
        try:
            arguments = suite.arguments(benchmark)
            timer = benchmark._get_timer(*arguments)
            kept = None
            # without a seed no proof is asked for, and preparing it takes long
            if "kept" in request and not suite.is_raw(benchmark):
                kept = KeptCall(benchmark.func, arguments, int(request["kept"]) + place)
                kept.watch(timer, consume=bool(asked.get("consume")))
            timer = own_time(timer)
            if benchmark.number == 0 and setup > ASV_BATCH_SECONDS:
                timer = SetUpOnce(timer, benchmark)
            counted = Counted(timer)
            _meet(emit, request, event="begin", place=place)
            timings, number = _timings(benchmark, counted, bool(asked["isolate"]), bool(asked["once"]), seconds)
            _meet(emit, request, event="finish", place=place)
        finally:
            benchmark.do_teardown()
        proof: Answer = {}
        if kept is not None:
            proof = {
                "accounted": kept.accounted,
                "setups": kept.setups,
                "measured": sum(timings),
                "counted": counted.seconds,
                "batches": counted.batches,
            }
            if request.get("proofs"):
                proof["proof"] = kept.values(int(request["proofs"]) + place)
    except NotImplementedError:
        return {"outcome": "skipped", "message": suite.failure_message()}
    # other load only ever adds to a batch; the minimum is a moment that the other arms need not have met
    taken = {"value": sorted(timings)[len(timings) // 4] / number, "calls": number * len(timings)}
    # a timer of another kind uses the clock
    return {"outcome": "timed", "waited": getattr(timer, "waited", True), **taken, **proof}


def _meet(emit: Emit, request: dict[str, Any], **fields: object) -> None:
    """Tell the host, and if it wants to look at its own clocks meanwhile, stop until it lets this process go on."""
    emit(**fields)
    if request.get("meets"):
        os.kill(os.getpid(), signal.SIGSTOP)


def _valued(benchmark: suite.RunnableBenchmark) -> Answer:
    """The single value of a process, by asv_runner's rule: its peak memory, the size of the result, or the result
    itself.

    A tracked value may be a time that its author measured: nothing may run in parallel with it.
    """
    told: Any = benchmark.run(*suite.arguments(benchmark))
    # what a subclass of a number stores, not what its methods make of it
    value = float(int.__pos__(told) if isinstance(told, int) else told)
    if not (math.isfinite(value) and value > 0):
        return {"outcome": "no_ratio", "message": f"{value:g} has no ratio"}
    return {"outcome": "timed", "waited": suite.metric_of(benchmark) == "track", "value": value, "calls": 1}


class Counted:
    """Times as *timer* does, and adds up what it says."""

    def __init__(self, timer: suite.Timer) -> None:
        self._timer = timer
        self.seconds, self.batches = 0.0, 0

    def timeit(self, number: int) -> float:
        """Seconds that *number* calls took."""
        passed = self._timer.timeit(number)
        self.seconds += passed
        self.batches += 1
        return passed


class SetUpOnce:
    """Times as *timer* does, without a setup between batches of calls, which share one in any case.

    Each takes longer than a batch: a round of networkx#7244 took twice as long. A single call has one as ever.
    """

    def __init__(self, timer: suite.Timer, benchmark: suite.RunnableBenchmark) -> None:
        self._timer, self._benchmark = timer, benchmark

    @property
    def waited(self) -> bool:
        """Whether any calls waited voluntarily."""
        return bool(getattr(self._timer, "waited", True))

    def timeit(self, number: int) -> float:
        """Seconds that *number* calls took."""
        if number > 1:
            self._benchmark._redo_setup_next = False
        return self._timer.timeit(number)


def _timings(
    benchmark: suite.RunnableBenchmark, timer: suite.Timer, isolate: bool, once: bool, seconds: float
) -> tuple[list[float], int]:
    """Timings of several batches and the calls in each, by asv_runner's own loop; a single call with *once*.

    Newer asv_runners time a single call if there is a setup, which for short calls is timer noise. Here calls are
    batched behind one setup, as asv always did, unless the author said `number = 1` or *isolate* is set.
    """
    least, most, longest = 1, MAX_REPEATS, seconds
    if isinstance(benchmark.repeat, (list, tuple)):
        least, most, longest = min(3, int(benchmark.repeat[0])), int(benchmark.repeat[1]), float(benchmark.repeat[2])
    elif benchmark.repeat:
        most = int(benchmark.repeat)
    longest = min(longest, seconds)
    raw = suite.is_raw(benchmark)
    warmup = float(benchmark.warmup_time)
    if warmup < 0:
        warmup = 0.0 if raw else seconds / 2
    if once:
        return [timer.timeit(1)], 1
    began = time.process_time()
    if raw or not (isolate or benchmark.number == 1):
        timings, number = benchmark.benchmark_timing(
            timer, least, most, longest, warmup, benchmark.number, benchmark.min_run_count
        )
    else:
        if warmup > 0:
            # asv_runner's own warm-up calls again without a setup, which one that uses up its state cannot bear.
            benchmark.benchmark_timing(timer, 1, MAX_REPEATS, warmup, 0, 1, 1)
        timings, number = benchmark.benchmark_timing(timer, least, most, longest, 0, 1, 1)
    # asv_runner stopped by the clock, which goes on while others have the core
    while len(timings) < most and sum(timings) < longest:
        if len(timings) >= LEAST_BATCHES and time.process_time() - began > MOST_FACTOR * (warmup + longest):
            break
        timings.append(timer.timeit(number))
    return timings, number
