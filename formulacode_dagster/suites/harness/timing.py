"""One sample: the median time of one call of one benchmark, taken in this process."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

from . import suite

if TYPE_CHECKING:
    from .answers import Emit

MAX_REPEATS = 1000


def time_one(request: dict[str, Any], emit: Emit) -> None:
    """Time one benchmark with one combination of parameters, or say why that was not possible."""
    folder = tempfile.mkdtemp(prefix="fc-work-")
    try:
        os.chdir(folder)
        emit(**_timed(request))
    except NotImplementedError:
        emit(event="failed", kind="skipped", message=suite.failure_message())
    except BaseException:  # noqa: BLE001 - whatever a benchmark raises is its result
        emit(event="failed", kind="error", message=suite.failure_message())
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _timed(request: dict[str, Any]) -> dict[str, object]:
    errors: list[str] = []
    benchmark = _find(request, errors)
    if benchmark is None:
        message = "\n".join(errors) or "not defined here, or with other parameters"
        return {"event": "failed", "kind": "missing", "message": message}
    suite.prepare(benchmark, int(request["index"]), request["cache_folder"])
    if benchmark.do_setup():
        return {"event": "failed", "kind": "skipped", "message": "the benchmark skips these parameters"}
    try:
        timings, number = _timings(benchmark, bool(request["isolate"]), float(request["seconds"]))
    finally:
        benchmark.do_teardown()
    seconds = suite.median(timings) / number
    return {"event": "timed", "seconds": seconds, "calls": number * len(timings)}


def _find(request: dict[str, Any], errors: list[str]) -> suite.Benchmark | None:
    module, index = importlib.import_module(request["module"]), int(request["index"])
    for owner, attribute, benchmark in suite.benchmarks_of(module, lambda _name, message: errors.append(message)):
        if (owner, attribute) == (request["owner"], request["attribute"]):
            same = index < suite.combinations(benchmark) and suite.label(benchmark, index) == request["name"]
            return benchmark if same else None
    return None


def _timings(benchmark: suite.Benchmark, isolate: bool, seconds: float) -> tuple[list[float], int]:
    """Timings of several batches and the calls in each, by asv_runner's own loop.

    Newer asv_runners time a single call wherever there is a setup, which for short calls is timer noise. Here calls are
    batched behind one setup, as asv always did, unless the author said `number = 1` or *isolate* is asked for.
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
    timer = benchmark._get_timer(*suite.arguments(benchmark))
    if raw or not (isolate or benchmark.number == 1):
        return benchmark.benchmark_timing(
            timer, least, most, longest, warmup, benchmark.number, benchmark.min_run_count
        )
    if warmup > 0:
        # asv_runner's own warm-up calls again without a setup, which a benchmark that uses up its state cannot bear.
        benchmark.benchmark_timing(timer, 1, MAX_REPEATS, warmup, 0, 1, 1)
    return benchmark.benchmark_timing(timer, least, most, longest, 0, 1, 1)
