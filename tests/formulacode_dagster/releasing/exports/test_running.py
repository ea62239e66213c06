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


STOPS_AND_WORKS = """
import os, signal, time
for _ in range(2):
    print("stops", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
"""
HIDES_ITS_PEAK = """
import time
block = b"x" * ({} * 10**6)
# until it was seen, also by a machine that is busy
time.sleep(0.6)
del block
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
with open("/proc/self/status") as file:
    print(next(line for line in file if line.startswith("VmHWM")).split()[1])
"""
DEEP_FOLDERS = """
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
"""
DRIVER = """
import base64, json, sys
from formulacode_dagster.releasing.exports.grader import running
told = json.load(sys.stdin)
running.adopt_orphans()
done = running.run(
    ["/usr/bin/python3", "-I", "-S", "-c", told["program"]],
    user=told["user"], group=told["user"], timeout=told["timeout"], cwd="/", environment={"PATH": running.SYSTEM_PATH},
    is_meeting=(lambda line: line == b"stops") if told["meets"] else None, watches_memory=told["watches"],
)
remaining = [each for each in running._processes() if told["user"] in each["users"] and each["state"] not in "XZ"]
told = {"stdout": done.stdout.decode(), "stderr": done.stderr.decode(), "remaining": len(remaining)}
json.dump({**done._asdict(), **told}, sys.stdout)
"""
"""Runs a program as the grader does, in a process of its own: it adopts and waits for what others start."""


def done(program, timeout=20.0, *, meets=False, watches=False):
    """How *program* ended."""
    asked = {"program": program, "user": USER, "timeout": timeout, "meets": meets, "watches": watches}
    request = json.dumps(asked)
    command = [sys.executable, "-c", DRIVER]
    told = subprocess.run(command, input=request, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(told.stdout)


def test_clocks_are_read_while_a_process_stands_still():
    told = done(STOPS_AND_WORKS, meets=True)
    (clock, cpu), (later, more) = told["meetings"]
    assert 0.2 < more - cpu < 5
    assert more - cpu < later - clock + 0.1
    assert told["rc"] == 0


def test_a_process_that_does_not_stop_is_not_waited_for_long():
    told = done("print('stops', flush=True)\nimport time\ntime.sleep(0.1)\n", meets=True)
    assert len(told["meetings"]) == 1
    assert told["rc"] == 0


def test_memory_is_seen_from_outside_and_only_on_request():
    megabytes = 150
    assert done(HIDES_ITS_PEAK.format(megabytes))["memory"] == 0
    told = done(HIDES_ITS_PEAK.format(megabytes), watches=True)
    assert int(told["stdout"]) < 50 * 2**10, "the kernel forgot the peak"
    assert told["memory"] > megabytes * 10**6


def test_folders_deeper_than_the_stack_are_removed(tmp_path):
    subprocess.run([sys.executable, "-c", DEEP_FOLDERS], cwd=tmp_path, check=True)
    running.remove_tree(str(tmp_path / "d"))
    assert not list(tmp_path.iterdir())


def test_a_process_that_keeps_forking_ends():
    assert done(KEEPS_FORKING)["remaining"] == 0


def test_shared_memory_of_system_v_is_removed():
    key = 0x4643_0000 + os.getpid()
    assert int(done(LEAVES_SHARED_MEMORY.format(key=key))["stdout"]) >= 0
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
    assert len(done(f"print('x' * {size})")["stdout"]) == size + 1


@pytest.mark.parametrize("is_forbidden", [False, True])
def test_the_pace_of_a_core_is_known_where_no_process_may_choose_its_core(is_forbidden, monkeypatch):
    def forbid(*_arguments):
        raise PermissionError("sched_setaffinity")

    before = os.sched_getaffinity(0)
    if is_forbidden:
        monkeypatch.setattr(os, "sched_setaffinity", forbid)
    assert 0 < running.pace() < 5
    assert os.sched_getaffinity(0) == before
