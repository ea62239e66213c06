"""Stacks in which the time of a benchmark is spent: a sample every few milliseconds of its own time.

cProfile records callers, but not call paths; here a signal interrupts the calls. Long calls of compiled code are
interrupted only at their end: they count for the time since the last sample.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

from . import suite
from .profiles import asked_benchmarks, below, call_warmed, in_folder_of_its_own, is_called_once, name_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .answers import Emit
    from .child import Answer

LOOK_SECONDS = 0.002
MOST_FRAMES = 150
"""Depth of one stack; deeper calls count for its last function."""


def sample_stacks(request: dict[str, Any], emit: Emit) -> None:
    """Sample every one of `benchmarks` for about `seconds` of its own time, until `budget` seconds are used up."""
    for asked, benchmark, left in asked_benchmarks(request):
        if left <= 0 or suite.is_raw(benchmark):
            continue

        def work(benchmark: suite.RunnableBenchmark = benchmark, asked: dict[str, Any] = asked) -> Answer:
            once = is_called_once(benchmark, asked)
            return {"outcome": "sampled", **_sampled(benchmark, once, float(request["seconds"]), request["checkout"])}

        emit(event="stacks", benchmark=asked["name"], **in_folder_of_its_own(work, benchmark, asked, left))


def _sampled(benchmark: suite.RunnableBenchmark, once: bool, seconds: float, checkout: str) -> dict[str, Any]:
    """Frames, stacks of their numbers from the benchmark inwards with the seconds of each, and calls behind them."""
    spent: dict[tuple[CodeType, ...], float] = {}
    calls, began, last = 0, 0.0, 0.0

    def look(_signal: int, frame: FrameType | None) -> None:
        nonlocal last
        now, codes = time.process_time(), []
        while frame is not None and frame.f_code is not call.__code__:
            codes.append(frame.f_code)
            frame = frame.f_back
        if frame is not None and codes:
            stack = tuple(codes[::-1][:MOST_FRAMES])
            spent[stack] = spent.get(stack, 0.0) + now - last
        last = now

    def call(arguments: tuple[object, ...]) -> bool:
        nonlocal calls, began, last
        if not calls:
            began = last = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LOOK_SECONDS, LOOK_SECONDS)
        benchmark.func(*arguments)
        calls += 1
        return time.process_time() - began < seconds

    before = signal.signal(signal.SIGPROF, look)
    try:
        call_warmed(benchmark, once, call)
        total = time.process_time() - began if calls else 0.0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    numbers: dict[CodeType, int] = {}
    stacks = [
        [[numbers.setdefault(code, len(numbers)) for code in stack], round(took, 6)] for stack, took in spent.items()
    ]
    frames = [[below(code.co_filename, checkout), name_of(code), code.co_firstlineno] for code in numbers]
    return {"frames": frames, "stacks": stacks, "calls": calls, "seconds": round(total, 6)}
