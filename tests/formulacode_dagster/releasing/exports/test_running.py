"""Untrusted code ends with its process, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.releasing.exports.grader import running

USER = 23_456 + os.getpid() % 1000

KEEPS_FORKING = """
import os, time
while True:
    if os.fork():
        os._exit(0)
    time.sleep(0.001)
"""
LEAVES_SHARED_MEMORY = """
import ctypes
print(ctypes.CDLL(None).shmget({key}, 4096, 0o1666))
"""
WORKS_AS_AN_ORPHAN = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
"""


DRIVER = """
import base64, json, sys
from formulacode_dagster.releasing.exports.grader import running
told = json.load(sys.stdin)
running.adopt_orphans()
done = running.run(
    ["/usr/bin/python3", "-I", "-S", "-c", told["program"]],
    user=told["user"], group=told["user"], timeout=told["timeout"], cwd="/", environment={"PATH": running.SYSTEM_PATH},
)
lines = [(moment, line.decode()) for moment, line in done.lines]
remaining = [each for each in running._processes() if told["user"] in each["users"] and each["is_running"]]
json.dump({**done._asdict(), "lines": lines, "stderr": done.stderr.decode(), "remaining": len(remaining)}, sys.stdout)
"""
"""Runs a program as the grader does, in a process of its own: it adopts and waits for what others start."""


def done(program, timeout=20.0):
    """How *program* ended."""
    request = json.dumps({"program": program, "user": USER, "timeout": timeout})
    command = [sys.executable, "-c", DRIVER]
    told = subprocess.run(command, input=request, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(told.stdout)


def test_lines_come_with_the_moment_they_arrived():
    told = done("import time\nfor text in 'ab':\n    print(text, flush=True)\n    time.sleep(0.2)\n")
    assert [line for _, line in told["lines"]] == ["a", "b"]
    first, second = (moment for moment, _ in told["lines"])
    assert 0.1 < second - first < 5


def test_a_process_that_keeps_forking_ends():
    assert done(KEEPS_FORKING)["remaining"] == 0


def test_shared_memory_of_system_v_is_removed():
    key = 0x4643_0000 + os.getpid()
    ((_, number),) = done(LEAVES_SHARED_MEMORY.format(key=key))["lines"]
    assert int(number) >= 0
    keys = {int(line.split()[0]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    assert key not in keys


def test_a_process_that_hangs_is_ended_in_time():
    told = done("import time\ntime.sleep(600)\n", timeout=0.5)
    assert told["timed_out"]


def test_the_time_of_orphans_counts():
    # its parent waits for none of it, and is gone
    assert done(f"{WORKS_AS_AN_ORPHAN}\n")["cpu"] < 0.25
    assert done(WORKS_AS_AN_ORPHAN.replace("os._exit(0)", "time.sleep(1)"))["cpu"] > 0.25


@pytest.mark.parametrize("size", [10, 3 * running.CHUNK])
def test_output_of_any_size_is_read(size):
    ((_, line),) = done(f"print('x' * {size})")["lines"]
    assert len(line) == size
