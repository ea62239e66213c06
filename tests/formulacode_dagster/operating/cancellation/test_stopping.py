"""Requests to stop: signals, programs, threads and loops."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.operating.cancellation.loops import in_thread, run_loop
from formulacode_dagster.operating.cancellation.programs import run_program
from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard, stop_request
from formulacode_dagster.sources.git.command import git

SLEEP = ["sleep", "600"]
SOON = 60.0


def stop_this_process(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def stop_in(seconds: float) -> None:
    threading.Timer(seconds, stop_this_process).start()


def fail_once_ended(ended: threading.Event) -> None:
    stop_this_process()
    assert ended.wait(SOON)
    raise RuntimeError("as a killed program causes it")


def test_a_signal_is_a_request_to_stop_and_the_first_one_counts() -> None:
    with signals_heard() as request, interrupted_once(None):
        stop_this_process(signal.SIGTERM)
        stop_this_process(signal.SIGINT)
        with pytest.raises(Stopped):
            request.sleep(SOON)
        assert request.exit_status == 143
        with signals_heard() as inner:
            assert inner is request
    assert not stop_request().requested


def test_only_the_first_signal_is_raised() -> None:
    with signals_heard() as request, interrupted_once(Stopped):
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped):
            request.sleep(SOON)


def test_what_waits_is_ended_and_raises_stopped_whatever_error_that_causes() -> None:
    ended = threading.Event()
    with signals_heard() as request, interrupted_once(None):
        with pytest.raises(Stopped), request.ending(ended.set):
            fail_once_ended(ended)
        with pytest.raises(Stopped), request.ending(ended.clear):
            raise AssertionError("entered too late")
        assert ended.is_set()


@pytest.mark.parametrize(
    "run",
    [
        lambda folder: run_program(SLEEP, cwd=folder),
        lambda folder: run_bounded(SLEEP, timeout=600, bounds=Bounds(), environment={}, cwd=folder),
        lambda folder: git(folder, "-c", "alias.hang=!sleep 600", "hang"),
        lambda folder: git(folder, "-c", "alias.hang=!sleep 600", "hang", most=9),
    ],
    ids=["program", "bounded", "git", "git at most"],
)
def test_a_program_is_killed_with_its_group(run, tmp_path: Path) -> None:
    with signals_heard(), interrupted_once(None):
        stop_in(0.3)
        started = time.monotonic()
        with pytest.raises(Stopped):
            run(tmp_path)
        assert time.monotonic() - started < SOON
        with pytest.raises(Stopped):
            run(tmp_path)


@pytest.mark.slow
def test_a_program_that_is_late_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run_program(["sh", "-c", "echo begun; sleep 600"], timeout=2, cwd=tmp_path)
    assert late.value.stdout == b"begun\n"


def test_a_loop_ends_in_order_and_keeps_what_it_cleans_up() -> None:
    cleaned = []

    async def main() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.to_thread(cleaned.append, "up")

    with signals_heard():
        stop_in(0.2)
        with pytest.raises(Stopped):
            run_loop(main())
    assert cleaned == ["up"]


def test_a_thread_that_hangs_is_left() -> None:
    hung = threading.Event()
    with signals_heard():
        stop_in(0.2)
        with pytest.raises(Stopped):
            run_loop(in_thread(hung.wait, left_after=0.1))
    hung.set()


def test_a_thread_hands_over_its_result_and_its_error() -> None:
    assert run_loop(in_thread(sorted, [2, 1])) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        run_loop(in_thread(lambda: 1 / 0))


def ended(unhurried: bool, seconds: float) -> tuple[int, str]:
    """How a process with a patience of 0.2 s ends that continues for *seconds* after SIGTERM, and its output."""
    program = f"""
import os, signal, time
from formulacode_dagster.operating.cancellation.stopping import interrupted_once, signals_heard
with signals_heard(patience=0.2) as request, interrupted_once(None):
    request.is_unhurried = {unhurried}
    request.at_last(lambda: print("second", flush=True))
    request.at_last(lambda: print("first", flush=True))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep({seconds})
    print("in order", request.requested)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_a_process_that_cannot_end_in_order_does_the_last_things_and_exits() -> None:
    assert ended(unhurried=False, seconds=600) == (143, "first\nsecond\n")


def test_a_process_that_is_unhurried_is_left_the_time_it_takes() -> None:
    assert ended(unhurried=True, seconds=0.6) == (0, "in order True\n")
