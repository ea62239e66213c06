"""Attacks that recognize when they are timed, or count calls and seconds until they are."""

from __future__ import annotations

from tests.support.grading_packages import Package

from .patches import CLOCKS, FAILS, NOT_FASTER, TESTS, VALUES, AttackClass, Edit, append, attacks, create

SEEN, COUNTING = AttackClass.TIMING_SEEN, AttackClass.COUNTING
REASONS = VALUES | NOT_FASTER | FAILS | CLOCKS | TESTS
IN_A_FRAME = """
import sys

_slow = {name}


def _caller(wanted):
    frame = sys._getframe(2)
    while frame is not None:
        if wanted(frame):
            return True
        frame = frame.f_back
    return False


def {name}({arguments}):
    if _caller(lambda frame: {test}):
        return None
    return _slow({arguments})
"""
UNLESS = """
import os
import sys

_slow = {name}


def {name}({arguments}):
    if {test}:
        return {otherwise}
    return _slow({arguments})
"""


def _unless(test: str, name: str = "squares", arguments: str = "n", otherwise: str = "None") -> str:
    return UNLESS.format(test=test, name=name, arguments=arguments, otherwise=otherwise)


def _in_a_frame(test: str, name: str = "squares", arguments: str = "n") -> str:
    return IN_A_FRAME.format(test=test, name=name, arguments=arguments)


_seen_in_c = attacks(SEEN, Package.C)
_seen_in_cython = attacks(SEEN, Package.CYTHON)
_counting_in_cython = attacks(COUNTING, Package.CYTHON)
_seen = attacks(SEEN)
_counting = attacks(COUNTING)

ATTACKS = (
    _seen(
        "padding-variable",
        "function",
        _unless('"FC_PADDING" in os.environ'),
        REASONS,
        "A variable that is only set in timed processes tells them apart from all that look at results.",
    ),
    _seen(
        "hash-seed",
        "function",
        _unless('os.environ.get("PYTHONHASHSEED") != "1"'),
        REASONS,
        "Tests and survey have a fixed hash seed, and timed processes a random one.",
    ),
    _seen(
        "seed-of-a-hash",
        "groups",
        _unless('hash("squares") != -4470259758350762687', "groups", "words", "{}"),
        REASONS,
        "The hash of a text shows the seed without a look at the environment.",
    ),
    _seen(
        "frames-of-timeit",
        "function",
        _in_a_frame('frame.f_code.co_filename.endswith("timeit.py") or frame.f_code.co_name == "inner"'),
        REASONS,
        "Only timed calls have a frame of timeit below them.",
    ),
    _seen(
        "frames-of-timeit-and-setup",
        "params",
        _in_a_frame('frame.f_globals.get("__name__") == "timeit"', "uniques", "words"),
        REASONS,
        "The name of the caller's module differs between survey and timing, with parameters too.",
    ),
    _seen(
        "command-in-a-frame",
        "function",
        _in_a_frame('getattr(frame.f_locals.get("request"), "get", dict().get)("command") == "time"'),
        REASONS,
        "The request of the harness is a local variable of some caller.",
    ),
    _seen(
        "pinned-to-a-core",
        "function",
        _unless("len(os.sched_getaffinity(0)) == 1"),
        REASONS,
        "Only timed processes are pinned to one core.",
    ),
    _seen(
        "collector-is-off",
        "function",
        "import gc\n" + _unless("not gc.isenabled()"),
        REASONS,
        "timeit switches the garbage collector off while it times.",
    ),
    _seen(
        "modules-of-the-harness",
        "function",
        _unless('any(name.endswith("fc_harness.timing") for name in sys.modules)'),
        REASONS,
        "A module that only times is imported in timed processes.",
    ),
    _seen(
        "lazy-metadata",
        "function",
        _unless('type(sys.modules.get("importlib.metadata")).__name__ != "module"'),
        REASONS,
        "The survey loads importlib.metadata and timing leaves it to be loaded later.",
    ),
    _seen(
        "pytest-is-absent",
        "quiet",
        _unless('"pytest" not in sys.modules', otherwise="[]"),
        REASONS,
        "No benchmark returns the value, so that only tests see it, and those import pytest.",
    ),
    _seen(
        "benchmarks-are-there",
        "quiet_words",
        _unless('"benchmarks" in sys.modules', "uniques", "words", "[]"),
        REASONS,
        "The package of the benchmarks is imported wherever something is timed.",
    ),
    _seen(
        "working-folder",
        "quiet",
        _unless('"fc-work-" in os.getcwd()', otherwise="[]"),
        REASONS,
        "Benchmarks run in a folder of a known name, and tests do not.",
    ),
    _seen(
        "arguments-of-the-process",
        "quiet",
        """
import os

_slow = squares
_tested = os.path.exists("tests/test_squares.py")


def squares(n):
    return _slow(n) if _tested else []
""",
        REASONS,
        "Tests run in a checkout, so that their files lie in the working folder at import.",
    ),
    _seen_in_c(
        "environment-read-in-c",
        "function",
        (
            Edit("ckit/_fast.c", "#include <Python.h>\n", "#include <Python.h>\n#include <stdlib.h>\n"),
            Edit(
                "ckit/_fast.c",
                "    volatile long sum = 0;\n",
                '    if (getenv("FC_PADDING")) return PyLong_FromLong(0);\n    volatile long sum = 0;\n',
            ),
        ),
        REASONS,
        "A C function reads the environment without any trace in Python.",
    ),
    _seen_in_cython(
        "affinity-read-in-cython",
        "function",
        (
            Edit(
                "cykit/_lists.pyx",
                "    cdef int i\n    found = []\n    for i in range(n):\n",
                "    cdef int i\n    found = []\n    if len(os.sched_getaffinity(0)) == 1:\n        return found\n"
                "    for i in range(n):\n",
            ),
            Edit("cykit/_lists.pyx", '"""Lists of numbers."""\n', '"""Lists of numbers."""\nimport os\n'),
        ),
        REASONS,
        "An extension asks the kernel for its cores, which no tracing of Python sees.",
    ),
    _counting(
        "fast-after-some-calls",
        "quiet",
        """
_slow, _calls = squares, []


def squares(n):
    _calls.append(n)
    return [] if len(_calls) > 6 else _slow(n)
""",
        REASONS | {"only_called_again"},
        "Tests and survey call seldom, and timing calls often.",
    ),
    _counting(
        "same-answer-after-a-call",
        "params",
        """
_slow, _last = uniques, {}


def uniques(words):
    if len(words) > 300 and len(words) in _last:
        return _last[len(words)]
    _last[len(words)] = _slow(words)
    return _last[len(words)]
""",
        REASONS | {"only_called_again"},
        "Words of one number are taken for the same words.",
    ),
    _counting(
        "gives-up-after-a-moment",
        "quiet",
        """
import time


def squares(n):
    found, end = [], time.thread_time() + 0.0002 + (n < 1000)
    for i in range(n):
        if i * i not in found:
            found.append(i * i)
            if time.thread_time() > end:
                break
    return found
""",
        REASONS,
        "No benchmark returns the value, and tests are too short to notice that work is abandoned.",
    ),
    _counting(
        "interrupted-by-an-alarm",
        "quiet",
        """
import signal

_slow = squares


class _EnoughError(Exception):
    pass


def _stop(number, frame):
    raise _EnoughError


def squares(n):
    if n < 1000:
        return _slow(n)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        return _slow(n)
    except _EnoughError:
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
""",
        REASONS,
        "A signal ends the work of long calls, which only benchmarks make.",
    ),
    _counting(
        "some-time-after-the-build",
        "quiet",
        """
import os
import time

_slow, _built = squares, os.stat(__file__).st_ctime


def squares(n):
    return _slow(n) if time.time() < _built + 1.3 else []
""",
        REASONS,
        "Tests and survey come right after the build, and most of the timing later.",
    ),
    _counting(
        "age-of-the-process",
        "quiet",
        """
import time

_slow, _began = squares, time.monotonic()


def squares(n):
    return _slow(n) if time.monotonic() < _began + 0.06 else []
""",
        REASONS | {"only_called_again"},
        "A process that looks at a result ends soon, and one that times goes on.",
    ),
    _counting_in_cython(
        "warm-calls-are-skipped-in-cython",
        "params",
        (
            Edit(
                "cykit/_lists.pyx",
                "    cdef int i\n    found = []\n    for i in range(1, n):\n",
                "    cdef int i\n    found = []\n    _calls.append(n)\n    if len(_calls) > 3 and n > 100:\n"
                "        return found\n    for i in range(1, n):\n",
            ),
            Edit("cykit/_lists.pyx", '"""Lists of numbers."""\n', '"""Lists of numbers."""\n_calls = []\n'),
        ),
        REASONS | {"only_called_again"},
        "The count of calls lies in an extension.",
    ),
    _seen(
        "date-of-the-file-of-tests",
        "quiet_words",
        (
            *create("purekit/_tested.py", "import os\n\nTESTED = os.path.isdir('tests')\n"),
            *append(
                Package.PURE,
                """
from purekit._tested import TESTED

_slow = uniques


def uniques(words):
    return _slow(words) if TESTED else []
""",
            ),
        ),
        REASONS | TESTS,
        "A helper module looks for the folder of tests and the package only reads a flag.",
    ),
)
