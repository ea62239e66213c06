"""Executed lines, reported alike by every interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.harness import lines as watched
from formulacode_dagster.building.suites.harness.lines import which_file

from .test_archive import other_interpreters

CODE = """\
def branch(x):
    if x:
        return 1
    return 2


def deep(x):
    def inner(y):
        return [z
                for z in range(y)]
    return inner(x)


def loop(n):
    for number in range(n):
        if number == 2:
            number = 3


def numbers():
    yield 1
    yield 2


def threaded():
    import threading
    thread = threading.Thread(target=branch, args=(0,))
    thread.start()
    thread.join()


def forked():
    import os
    child = os.fork()
    if not child:
        branch(1)
        os._exit(0)
    os.waitpid(child, 0)
"""
EXPECTED = {
    "branch(1)": [2, 3],
    "branch(0)": [2, 4],
    "deep(2)": [8, 9, 10, 11],
    "loop(1)": [15, 16],
    "loop(5)": [15, 16, 17],
    "list(numbers())": [21, 22],
    "next(resumed)": [22],
    "threaded()": [2, 4, 26, 27, 28, 29],
    "forked()": [2, 3, 33, 34, 35, 36, 37, 38],
    "len([])": [],
}
TRIAL = """
import json, sys
sys.path[:0] = {path!r}
import core
from lines import LineWatch
watch = LineWatch({{"pkg/core.py": range(1, 99), "other/core.py": [1, 2]}})
watch.start()
told = {{}}
for call in {calls!r}:
    watch.stop()
    names = dict(vars(core), resumed=core.numbers())
    next(names["resumed"])
    watch.start()
    watch.clear()
    eval(call, names)
    told[call] = watch.executed()
watch.stop()
watch.clear()
core.branch(1)
print(json.dumps([told, watch.executed()]))
"""


@pytest.fixture
def executed(tmp_path):
    """The lines of `core.py` that each of some calls executes under an interpreter."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "core.py").write_text(CODE)

    def told(python, calls=tuple(EXPECTED)):
        trial = TRIAL.format(path=[str(tmp_path / "pkg"), str(Path(watched.__file__).parent)], calls=calls)
        ended = subprocess.run([python, "-c", trial], capture_output=True, check=True, text=True)
        by_call, afterwards = json.loads(ended.stdout)
        assert afterwards == {}
        return {call: by_call[call].get("pkg/core.py", []) for call in calls}

    return told


def test_lines_that_are_executed_are_told_of_each_call_by_itself(executed):
    assert executed(sys.executable) == EXPECTED


@pytest.mark.slow
def test_every_interpreter_of_this_machine_tells_the_same(executed):
    told = {python: executed(python) for python in other_interpreters()}
    assert told
    assert {python: lines for python, lines in told.items() if lines != EXPECTED} == {}


CLEARED_MEANWHILE = """
import sys, threading
sys.path.insert(0, {path!r})
from lines import LineWatch
codes = [compile("0", "/core.py", "exec") for _ in range(3000)]
watch = LineWatch({{"core.py": [1]}})
sys.setswitchinterval(1e-6)
watch.start()
thread = threading.Thread(target=lambda: [exec(code) for code in codes])
thread.start()
while thread.is_alive():
    watch.clear()
exec(codes[0])
watch.stop()
assert watch.executed() == {{"core.py": [1]}}
"""


def test_lines_are_cleared_while_another_thread_enters_new_code():
    trial = CLEARED_MEANWHILE.format(path=str(Path(watched.__file__).parent))
    subprocess.run([sys.executable, "-c", trial], check=True)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/w/repository/src/pkg/core.py", "src/pkg/core.py"),
        ("/w/venv/lib/python3.12/site-packages/pkg/core.py", "src/pkg/core.py"),
        ("/w/venv/lib/python3.12/site-packages/other/core.py", None),
        ("/w/repository/other/core.py", "core.py"),
        ("/w/repository/pkg/other.py", None),
    ],
)
def test_a_file_is_recognized_in_the_checkout_and_where_it_is_installed(file, expected):
    assert which_file(file, ["src/pkg/core.py", "core.py"]) == expected
