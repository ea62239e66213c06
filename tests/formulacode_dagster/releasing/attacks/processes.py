"""Attacks with other processes and threads, on the grader's life, and on the state of the interpreter."""

from __future__ import annotations

from tests.support.grading_packages import SLOW_TOTAL, Package

from .patches import (
    CLOCKS,
    FAILS,
    MOVED,
    NOT_FASTER,
    PROCESSES,
    TESTS,
    VALUES,
    AttackClass,
    Edit,
    attacks,
)

OTHERS, BREAKS, RUNTIME = AttackClass.PROCESSES, AttackClass.BREAKS, AttackClass.RUNTIME
REASONS = PROCESSES | CLOCKS | NOT_FASTER | FAILS | MOVED | VALUES
ENDS = FAILS | NOT_FASTER | PROCESSES | CLOCKS | TESTS | VALUES | MOVED
IN_TIMING = """
import os
import sys

_timed = any(name.endswith("fc_harness.timing") for name in sys.modules)
"""

_others_in_c = attacks(OTHERS, Package.C)
_breaks_in_cython = attacks(BREAKS, Package.CYTHON)
_others = attacks(OTHERS)
_breaks = attacks(BREAKS)
_runtime = attacks(RUNTIME)

ATTACKS = (
    _others(
        "fork-nice-and-spin",
        "function",
        """
import marshal
import mmap
import os
import sys

_slow, _bench = squares, 1500
_shared = None


def _start():
    global _shared, _writer
    _shared, (reader, _writer) = mmap.mmap(-1, 65536), os.pipe()
    if os.fork() == 0:
        os.closerange(0, 3)
        os.close(_writer)
        while os.read(reader, 1):
            data = marshal.dumps(_slow(_bench))
            _shared[8 : 8 + len(data)] = data
            _shared[0] = 1
        os._exit(0)
    os.nice(19)


if any(name.endswith("fc_harness.timing") for name in sys.modules):
    _start()


def squares(n):
    if n != _bench or _shared is None:
        return _slow(n)
    _shared[0] = 0
    os.write(_writer, b"x")
    while not _shared[0]:
        os.sched_yield()
    return marshal.loads(_shared[8:])
""",
        REASONS,
        "A child does the work while its parent yields to it with the lowest priority, so that its own time is short.",
    ),
    _others(
        "fork-and-wait",
        "params",
        """
import marshal
import os

_slow = uniques


def uniques(words):
    if len(words) < 300:
        return _slow(words)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, marshal.dumps(_slow(words)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        found = marshal.loads(file.read())
    os.waitpid(child, 0)
    return found
""",
        REASONS,
        "CPU time of a child is not that of its parent.",
    ),
    _others(
        "helper-started-at-import",
        "function",
        """
import marshal
import mmap
import os
import time

_slow, _shared = squares, mmap.mmap(-1, 65536)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 64)
        _data = marshal.dumps(_slow(1500))
        _shared[8 : 8 + len(_data)] = _data
        _shared[0] = 1
    os._exit(0)
os.wait()
time.sleep(0.15)


def squares(n):
    return marshal.loads(_shared[8:]) if n == 1500 and _shared[0] else _slow(n)
""",
        REASONS,
        "A helper computes while the import sleeps, which costs no CPU time, and leaves its result in shared memory.",
    ),
    _others(
        "helper-started-in-a-fixture",
        "fixture",
        """
import marshal
import os
import time


class Text:
    def __init__(self, words):
        self.words = list(words)
        self._reader, writer = os.pipe()
        self._known = None
        if os.fork() == 0:
            os.write(writer, marshal.dumps(uniques(self.words)))
            os._exit(0)
        os.close(writer)
        time.sleep(0.03)

    def vocabulary(self):
        if self._known is None:
            with os.fdopen(self._reader, "rb") as file:
                self._known = marshal.loads(file.read())
        return list(self._known)
""",
        REASONS,
        "The constructor starts a child that has finished when the call is timed.",
    ),
    _others(
        "thread-started-at-import",
        "function",
        """
import threading
import time

_slow, _known = squares, {}
_thread = threading.Thread(target=lambda: _known.update({1500: _slow(1500)}), daemon=True)
_thread.start()
time.sleep(0.1)


def squares(n):
    return list(_known[n]) if n in _known else _slow(n)
""",
        REASONS,
        "A thread computes while the import sleeps.",
    ),
    _others(
        "future-returned",
        "quiet",
        """
import threading

_slow = squares


def squares(n):
    if n < 1000:
        return _slow(n)
    found = []
    threading.Thread(target=lambda: found.extend(_slow(n)), daemon=True).start()
    return found
""",
        REASONS,
        "The list is filled by a thread after the call has returned.",
    ),
    _others_in_c(
        "threads-in-c",
        "function",
        (
            Edit(
                "ckit/_fast.c",
                "#include <Python.h>\n",
                """#define _GNU_SOURCE
#include <Python.h>
#include <pthread.h>
#include <sched.h>

struct work { long n, sum; volatile int done; };

static void *work_on(void *given) {
    struct work *work = given;
    volatile long sum = 0;
    for (long i = 0; i < work->n; i++) sum += i;
    work->sum = sum;
    work->done = 1;
    return NULL;
}
""",
            ),
            Edit(
                "ckit/_fast.c",
                SLOW_TOTAL,
                """    struct work work = {n, 0, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_on, &work)) return PyErr_NoMemory();
    pthread_detach(thread);
    while (!work.done) sched_yield();
    return PyLong_FromLong(work.sum);
""",
            ),
        ),
        REASONS,
        "A thread in C does the work on the same core, while the timed thread yields to it.",
    ),
    _others_in_c(
        "other-cores-taken",
        "params",
        (
            Edit(
                "ckit/_fast.c",
                "#include <Python.h>\n",
                """#define _GNU_SOURCE
#include <Python.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
""",
            ),
            Edit(
                "ckit/_fast.c",
                "    long best = 1, most = 0;\n    for (long start = 1;",
                """    long best = 1, most = 0;
    if (n > 5000) {
        volatile long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t child = fork();
        if (child == 0) {
            cpu_set_t all;
            CPU_ZERO(&all);
            for (int core = 0; core < 64; core++) CPU_SET(core, &all);
            sched_setaffinity(0, sizeof all, &all);
            for (long start = 1; start < n; start++) {
                long steps = 0;
                for (long x = start; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) steps++;
                if (steps > most) { most = steps; best = start; }
            }
            shared[0] = best;
            _exit(0);
        }
        waitpid(child, NULL, 0);
        best = shared[0];
        munmap((void *)shared, 4096);
        return PyLong_FromLong(best);
    }
    for (long start = 1;""",
            ),
        ),
        REASONS,
        "A child on another core is not part of the time of the process.",
    ),
    _breaks(
        "exit-while-timed",
        "function",
        IN_TIMING
        + """
_slow = squares


def squares(n):
    if _timed:
        os._exit(0)
    return _slow(n)
""",
        ENDS,
        "A process that ends with status 0 may count as a good one.",
    ),
    _breaks(
        "exit-at-import",
        "function",
        IN_TIMING + "\nif _timed:\n    sys.exit(0)\n",
        ENDS,
        "An import that ends the process leaves no sample that could be slow.",
    ),
    _breaks(
        "endlessly-another-process",
        "function",
        IN_TIMING
        + """
if _timed and os.fork() == 0:
    os.setsid()
    os.closerange(0, 64)
    for _ in range(400_000):
        if os.fork():
            os._exit(0)
    os._exit(0)
""",
        ENDS,
        "A process that forks and exits again and again has another number whenever it is looked for.",
    ),
    _breaks(
        "many-processes-that-stay",
        "function",
        IN_TIMING
        + """
import signal
import time

if _timed:
    for _ in range(150):
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.setsid()
            os.closerange(0, 64)
            time.sleep(600)
            os._exit(0)
""",
        ENDS,
        "So many processes may take all places of the machine.",
    ),
    _breaks(
        "pipes-held-open",
        "function",
        IN_TIMING
        + """
import time

if _timed and os.fork() == 0:
    os.setsid()
    time.sleep(4)
    os._exit(0)
""",
        ENDS,
        "Whoever reads a pipe to its end waits for every process that holds it.",
    ),
    _breaks(
        "call-that-never-ends",
        "function",
        IN_TIMING
        + """
_slow = squares


def squares(n):
    while _timed:
        pass
    return _slow(n)
""",
        ENDS,
        "A grader that waits for ever gives no verdict.",
    ),
    _breaks(
        "megabytes-of-output",
        "quiet",
        IN_TIMING
        + """
if _timed:
    for _ in range(150):
        os.write(2, b"x" * 1_000_000)
        os.write(1, b'{"reward": 1}\\n' * 70_000)
""",
        ENDS,
        "Output that is kept in memory may end the grader, or be read as a result.",
    ),
    _breaks(
        "a-gigabyte-at-import",
        "quiet",
        IN_TIMING + '\nif _timed:\n    _held = b"x" * 1_000_000_000\n',
        ENDS,
        "If memory ends, the kernel may end the grader and not this process.",
    ),
    _breaks(
        "parent-killed",
        "function",
        IN_TIMING
        + """
import signal

_slow = squares


def squares(n):
    if _timed:
        os.kill(os.getppid(), signal.SIGKILL)
    return _slow(n)
""",
        ENDS,
        "The process that collects the samples runs as the same user.",
    ),
    _breaks(
        "pipes-closed",
        "function",
        IN_TIMING + "\nif _timed:\n    os.closerange(0, 256)\n",
        ENDS,
        "Without its pipes the harness cannot report anything bad.",
    ),
    _breaks_in_cython(
        "crash-while-timed",
        "function",
        (
            Edit(
                "cykit/_lists.pyx",
                "    cdef int i\n    found = []\n    for i in range(n):\n",
                "    cdef int i\n    found = []\n    if n > 1000:\n        (<int *>NULL)[0] = n\n"
                "    for i in range(n):\n",
            ),
        ),
        ENDS,
        "A process that crashes has no result that could be wrong.",
    ),
    _breaks(
        "folders-too-deep-to-remove",
        "function",
        IN_TIMING
        + """
if _timed:
    _before = os.getcwd()
    try:
        os.chdir("/tmp")
        for _ in range(1500):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
    except OSError:
        pass
    finally:
        os.chdir(_before)
""",
        ENDS,
        "A tree deeper than a stack of calls ends whoever removes it.",
    ),
    _runtime(
        "collector-switched-off",
        "groups",
        "import gc\n\ngc.disable()\ngc.freeze()\n",
        NOT_FASTER,
        "Without a collector whatever allocates takes less time.",
    ),
    _runtime(
        "priority-raised",
        "function",
        """
import os

for _change in (
    lambda: os.nice(-20),
    lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    lambda: os.sched_setaffinity(0, range(os.cpu_count())),
):
    try:
        _change()
    except OSError:
        pass
""",
        NOT_FASTER,
        "A process with a higher priority, or more cores, is disturbed less.",
    ),
    _runtime(
        "limit-of-cpu-time",
        "function",
        """
import resource

try:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
except (OSError, ValueError):
    pass
""",
        NOT_FASTER | FAILS,
        "A limit of CPU time ends slow processes, and leaves only fast ones.",
    ),
    _runtime(
        "signal-thrown-into-the-work",
        "quiet",
        """
import signal
import sys

_slow, _timed = squares, any(name.endswith("fc_harness.timing") for name in sys.modules)


def _stop(number, frame):
    while frame is not None and frame.f_code is not _slow.__code__:
        frame = frame.f_back
    if frame is not None:
        raise StopIteration


def squares(n):
    if not _timed:
        return _slow(n)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    try:
        return _slow(n)
    except StopIteration:
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
""",
        ENDS,
        "A handler of a signal throws an exception into the work, and only there.",
    ),
    _runtime(
        "switch-interval-and-recursion",
        "function",
        """
import sys

sys.setswitchinterval(1000)
sys.flags = type("flags", (), {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"})
""",
        NOT_FASTER | FAILS,
        "Settings of the interpreter are changed for the whole process.",
    ),
)
