"""Stacks in which the time of a benchmark is spent: a sample every few milliseconds of its own time.

cProfile records callers, but not call paths; here a signal interrupts the calls. Long calls of compiled code are
interrupted only at their end: they count for the time since the last sample.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from . import suite
from .lines import which_file
from .profiles import asked_benchmarks, below, call_warmed, in_folder_of_its_own, is_called_once, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType, FrameType

    from .answers import Emit
    from .child import Answer

LOOK_SECONDS = 0.002
SHORT_PART = 3
"""Part of the seconds after which it is seen whether these are enough."""
MOST_FRAMES = 150
"""Depth of a reported stack; deeper calls count for its last function."""


def sample_stacks(request: dict[str, Any], emit: Emit) -> None:
    """Sample every one of `benchmarks` for about `seconds` of its own time, until `budget` seconds are used up.

    `within` are first and last lines of functions by path: of the time, the part is reported that is spent in them. A
    third of `seconds` is enough for a benchmark of which that is `enough` of its time.
    """
    within, enough = request["within"], float(request["enough"])
    for asked, benchmark, left in asked_benchmarks(request):
        if left <= 0 or suite.is_raw(benchmark):
            continue

        def work(benchmark: suite.RunnableBenchmark = benchmark, asked: dict[str, Any] = asked) -> Answer:
            once = is_called_once(benchmark, asked)
            spent, told = _sampled(
                benchmark,
                once,
                float(request["seconds"]),
                lambda stacks, seconds: _inside(stacks, within) >= enough * seconds,
            )
            frames, stacks = _numbered(spent, request["checkout"])
            inside = _inside(spent, within)
            return {"outcome": "sampled", **told, "inside": inside, "frames": frames, "stacks": stacks}

        emit(event="stacks", benchmark=asked["name"], **in_folder_of_its_own(work, benchmark, asked, left))


def _sampled(
    benchmark: suite.RunnableBenchmark,
    once: bool,
    seconds: float,
    is_enough: Callable[[dict[tuple[CodeType, ...], float], float], bool],
) -> tuple[dict[tuple[CodeType, ...], float], dict[str, Any]]:
    """Seconds by stack, from the benchmark inwards, and how many calls and seconds were looked at.

    A part of *seconds* is looked at if the stacks of that are enough. Setups between calls that are made *once* each
    are left out. `elsewhere` are seconds of other threads and of ended processes, which no sample sees.
    """
    spent: dict[tuple[CodeType, ...], float] = {}
    calls, began, ended, last, setups, is_between = 0, 0.0, 0.0, 0.0, 0.0, False
    thread, limit = [0.0, 0.0], seconds / SHORT_PART

    def look(_signal: int, frame: FrameType | None) -> None:
        nonlocal last
        if is_between:
            return
        now, codes = time.process_time() - setups, []
        while frame is not None and frame.f_code is not call.__code__:
            codes.append(frame.f_code)
            frame = frame.f_back
        if frame is not None and codes:
            stack = tuple(codes[::-1])
            spent[stack] = spent.get(stack, 0.0) + now - last
        last = now

    def call(arguments: tuple[object, ...]) -> bool:
        nonlocal calls, began, ended, last, setups, is_between, limit
        if not calls:
            began = last = time.process_time()
            thread[:] = [time.thread_time(), _of_children()]
            signal.setitimer(signal.ITIMER_PROF, LOOK_SECONDS, LOOK_SECONDS)
        elif once:
            setups += time.process_time() - ended
        is_between = False
        benchmark.func(*arguments)
        is_between = once
        ended = time.process_time()
        calls += 1
        looked = ended - began - setups
        if limit < seconds and looked >= limit and not is_enough(spent, looked):
            limit = seconds
        return looked < limit

    before = signal.signal(signal.SIGPROF, look)
    try:
        call_warmed(benchmark, once, call)
        whole = time.process_time() - began
        elsewhere = whole - (time.thread_time() - thread[0]) + _of_children() - thread[1] if calls else 0.0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    total = ended - began - setups
    return spent, {"calls": calls, "seconds": round(total, 6), "elsewhere": round(max(0.0, elsewhere), 6)}


def _of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _numbered(spent: Mapping[tuple[CodeType, ...], float], checkout: str) -> tuple[list[Any], list[Any]]:
    """Frames, and stacks of their numbers, cut to MOST_FRAMES, with the seconds of each."""
    reported: dict[tuple[CodeType, ...], float] = {}
    for stack, took in spent.items():
        reported[stack[:MOST_FRAMES]] = reported.get(stack[:MOST_FRAMES], 0.0) + took
    numbers: dict[CodeType, int] = {}
    stacks = [
        [[numbers.setdefault(code, len(numbers)) for code in stack], round(took, 6)] for stack, took in reported.items()
    ]
    return [[below(code.co_filename, checkout), name_of(code), code.co_firstlineno] for code in numbers], stacks


def _inside(spent: Mapping[tuple[CodeType, ...], float], within: Mapping[str, Sequence[tuple[int, int]]]) -> float:
    """Seconds of the stacks that go through a function which begins within one of the lines of *within*."""
    known: dict[CodeType, bool] = {}

    def begins(code: CodeType) -> bool:
        if code not in known:
            path = which_file(os.path.abspath(code.co_filename), within)
            spans = within[path] if path else ()
            known[code] = any(first <= code.co_firstlineno <= last for first, last in spans)
        return known[code]

    return round(sum(took for stack, took in spent.items() if any(map(begins, stack))), 6)
