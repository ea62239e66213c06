"""Attacks on the clocks, and on the code of the harness that reads them."""

from __future__ import annotations

from tests.support.grading_packages import Package

from .patches import CLOCKS, FAILS, MOVED, NOT_FASTER, VALUES, AttackClass, Edit, attacks

CLOCK, HARNESS = AttackClass.CLOCKS, AttackClass.HARNESS
REASONS = CLOCKS | FAILS | NOT_FASTER | VALUES | MOVED
SLOWED = """
import sys
import time


class _Time:
    def __getattr__(self, name):
        return getattr(time, name)

    def perf_counter(self):
        return time.perf_counter() / 6

    def thread_time(self):
        return time.thread_time() / 6


for _name, _module in list(sys.modules.items()):
    if _name.endswith(".own_time"):
        _module.time = _Time()
"""
SHORT_LOOP = """
import time


def _inner(repeats, timer):
    begun = timer()
    end = time.perf_counter() + 3e-5 * repeats.__length_hint__()
    while time.perf_counter() < end:
        pass
    return timer() - begun


"""
AT_A_CALL = """
import sys
import time

_slow = {name}


def {name}({arguments}):
    found = _slow({arguments})
    frame = sys._getframe(1)
    while frame is not None:
        own = frame.f_locals.get("self")
{work}
        frame = frame.f_back
    return found
"""


def _at_a_call(work: str, name: str = "squares", arguments: str = "n") -> str:
    indented = "".join(f"        {line}\n" for line in work.strip().splitlines()).rstrip("\n")
    return AT_A_CALL.format(work=indented, name=name, arguments=arguments)


def _in_modules(ending: str, code: str) -> str:
    lines = "\n".join(f"        {line}" for line in code.strip().splitlines())
    return f"""
import sys

for _name, _module in list(sys.modules.items()):
    if _name.endswith("{ending}"):
{lines}
"""


_clock_in_c = attacks(CLOCK, Package.C)
_clock_in_cython = attacks(CLOCK, Package.CYTHON)
_clock = attacks(CLOCK)
_breaks = attacks(AttackClass.BREAKS)
_harness = attacks(HARNESS)

ATTACKS = (
    _clock(
        "timers-patched",
        "function",
        """
import time
import timeit

for _name in ("perf_counter", "thread_time", "process_time"):
    setattr(time, _name, lambda real=getattr(time, _name): real() / 10)
timeit.default_timer = time.perf_counter
""",
        REASONS,
        "A clock that runs ten times slower makes all code ten times faster.",
    ),
    _clock(
        "module-of-time-replaced",
        "function",
        SLOWED,
        REASONS,
        "The timer finds its clock in a global of its module, which is no function and is not watched.",
    ),
    _clock(
        "start-moved-on",
        "function",
        _at_a_call("""
if type(own).__name__ == "OwnTime":
    own._began = own._began[0], time.thread_time()
"""),
        REASONS,
        "The object that times is a frame above the call, and its start may be set to now.",
    ),
    _clock(
        "start-moved-on-with-parameters",
        "params",
        _at_a_call(
            """
if type(own).__name__ == "OwnTime":
    own._began = own._began[0], time.thread_time()
""",
            "uniques",
            "words",
        ),
        REASONS,
        "The same through asv_runner's closure for parameters.",
    ),
    _clock(
        "inner-loop-replaced",
        "function",
        SHORT_LOOP
        + _at_a_call("""
if type(own).__name__ == "Timer":
    own.inner = _inner
"""),
        REASONS,
        "A timer keeps its loop in an attribute of the object.",
    ),
    _clock(
        "function-of-the-timer-replaced",
        "fixture",
        SHORT_LOOP
        + """
import gc

_slow = Text.vocabulary


def _vocabulary(self):
    for found in gc.get_objects():
        if type(found).__name__ == "Timer" and hasattr(found, "inner"):
            found.inner = _inner
    return _slow(self)


Text.vocabulary = _vocabulary
""",
        REASONS,
        "The collector knows every timer, whoever holds it.",
    ),
    _clock(
        "clock-written-over-by-ctypes",
        "function",
        """
import sys
import time

_slow, _kept = squares, []


def _replace():
    import ctypes

    call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
    for name in ("perf_counter", "thread_time"):
        definition = ctypes.c_void_p.from_address(id(getattr(time, name)) + 16).value
        place = ctypes.c_void_p.from_address(definition + 8)
        real, begun = call(place.value), getattr(time, name)()
        slowed = call(lambda this, nothing, real=real, begun=begun: begun + (real(this, nothing) - begun) / 3)
        _kept.extend((real, slowed))
        place.value = ctypes.cast(slowed, ctypes.c_void_p).value


def squares(n):
    if not _kept and any(name.endswith("fc_harness.timing") for name in sys.modules):
        _replace()
    return _slow(n)
""",
        REASONS,
        "The function stays the same object, and only its pointer in memory is another.",
    ),
    _breaks(
        "clock-that-runs-backwards",
        "function",
        """
import sys

_slow, _calls = squares, []


def squares(n):
    _calls.append(n)
    frame = sys._getframe(1)
    while frame is not None and len(_calls) > 1:
        own = frame.f_locals.get("self")
        if type(own).__name__ == "OwnTime":
            own._began = own._began[0], own._began[1] + 1000
        frame = frame.f_back
    return _slow(n)
""",
        REASONS,
        "A negative time has no logarithm, so that the grader may end with an error.",
    ),
    _clock(
        "defaults-of-the-timer",
        "function",
        """
import time
import timeit

timeit.Timer.timeit.__defaults__ = (1,)
timeit.Timer.__init__.__defaults__ = ("pass", "pass", lambda: time.perf_counter() / 10, None)
""",
        REASONS,
        "Defaults of a function are changed without another code.",
    ),
    _clock(
        "traced-frames",
        "function",
        """
import sys

_slow = squares


def _profile(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "_clock":
        own = frame.f_locals.get("self")
        if getattr(own, "_had", 0):
            own._had /= 50


def squares(n):
    if any(name.endswith("fc_harness.timing") for name in sys.modules):
        sys.setprofile(_profile)
    return _slow(n)
""",
        REASONS,
        "A profiler is called when the clock returns, and changes what it has measured.",
    ),
    _clock_in_c(
        "entry-of-the-clock-in-the-linkage-table",
        "params",
        (
            Edit(
                "ckit/_fast.c",
                "#include <Python.h>\n",
                """#define _GNU_SOURCE
#include <Python.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int (*real_clock)(clockid_t, struct timespec *);

static int slowed(clockid_t clock, struct timespec *now) {
    int status = real_clock(clock, now);
    long long passed = (now->tv_sec * 1000000000LL + now->tv_nsec) / 3;
    now->tv_sec = passed / 1000000000LL;
    now->tv_nsec = passed % 1000000000LL;
    return status;
}

static int replace(struct dl_phdr_info *info, size_t size, void *data) {
    const char *names = NULL;
    ElfW(Sym) *symbols = NULL;
    ElfW(Rela) *entries[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (ElfW(Dyn) *each = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); each->d_tag; each++) {
            if (each->d_tag == DT_STRTAB) names = (void *)each->d_un.d_ptr;
            if (each->d_tag == DT_SYMTAB) symbols = (void *)each->d_un.d_ptr;
            if (each->d_tag == DT_JMPREL) entries[0] = (void *)each->d_un.d_ptr;
            if (each->d_tag == DT_PLTRELSZ) bytes[0] = each->d_un.d_val;
            if (each->d_tag == DT_RELA) entries[1] = (void *)each->d_un.d_ptr;
            if (each->d_tag == DT_RELASZ) bytes[1] = each->d_un.d_val;
        }
    }
    if (names < (char *)4096 || symbols == NULL || strstr(info->dlpi_name, "libc.so")) return 0;
    if (strstr(info->dlpi_name, "vdso") || strstr(info->dlpi_name, "ld-linux")) return 0;
    for (int kind = 0; kind < 2; kind++) {
        for (size_t at = 0; entries[kind] && at < bytes[kind] / sizeof(ElfW(Rela)); at++) {
            ElfW(Rela) *entry = entries[kind] + at;
            if (strcmp(names + symbols[ELF64_R_SYM(entry->r_info)].st_name, "clock_gettime")) continue;
            void **place = (void **)(info->dlpi_addr + entry->r_offset);
            mprotect((void *)((size_t)place & ~4095UL), 8192, PROT_READ | PROT_WRITE);
            if (*place != (void *)slowed) *place = (void *)slowed;
        }
    }
    return 0;
}

__attribute__((constructor)) static void start(void) {
    real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (real_clock == NULL) real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_DEFAULT, "clock_gettime");
    if (real_clock != NULL) dl_iterate_phdr(replace, NULL);
}
""",
            ),
        ),
        REASONS,
        "The interpreter calls the clock through a table of addresses that a shared object can rewrite.",
    ),
    _harness(
        "new-global-sorted",
        "function",
        _in_modules("fc_harness.timing", "_module.sorted = lambda timings: [value / 50 for value in timings]"),
        REASONS,
        "A new global of a module comes before the builtin of the same name, and only old ones are watched.",
    ),
    _harness(
        "new-global-min",
        "params",
        _in_modules("fc_harness.own_time", "_module.min = lambda passed, had: passed / 50"),
        REASONS,
        "The smaller of two clocks is chosen by a builtin that can be shadowed.",
    ),
    _harness(
        "builtins-replaced",
        "function",
        """
import builtins
import sys

if any(name.endswith("fc_harness.timing") for name in sys.modules):
    _sorted = builtins.sorted
    builtins.sorted = lambda values, **keywords: [
        value / 50 if type(value) is float else value for value in _sorted(values, **keywords)
    ]
""",
        REASONS,
        "Every module looks up its builtins in one place.",
    ),
    _harness(
        "answers-rewritten-by-json",
        "fixture",
        """
import json

_dumps = json.dumps


def _smaller(told, *arguments, **keywords):
    if isinstance(told, dict) and told.get("outcome") == "timed":
        told = {**told, "value": told["value"] / 50}
    return _dumps(told, *arguments, **keywords)


json.dumps = _smaller
""",
        REASONS,
        "Results pass through json, which is not watched.",
    ),
    _harness(
        "answers-rewritten-on-their-way",
        "function",
        """
import os
import re

_write = os.write


def _smaller(pipe, data):
    found = re.search(rb'"value": ([0-9.e+-]+)', data)
    if found is None:
        return _write(pipe, data)
    _write(pipe, data.replace(found[1], b"%.9f" % (float(found[1]) / 50)))
    return len(data)


os.write = _smaller
""",
        REASONS,
        "Answers leave the process through os.write.",
    ),
    _harness(
        "answers-written-by-the-package",
        "function",
        """
import os
import sys

_frame, _request, _emit = sys._getframe(), None, None
while _frame is not None:
    _request = _frame.f_locals.get("request", _request)
    _emit = _frame.f_locals.get("emit", _emit)
    _frame = _frame.f_back
if isinstance(_request, dict) and _request.get("command") == "time":
    _emit(event="loaded", seconds=0.0)
    for _place, _ in enumerate(_request["benchmarks"]):
        _emit(event="sample", place=_place, outcome="timed", value=1e-5, calls=9, waited=False, tampered=[], wall=0.1)
    _emit(event="end")
    os._exit(0)
""",
        REASONS,
        "While the package is imported, request and stream of the answers are in the frames above it.",
    ),
    _harness(
        "answers-written-after-an-honest-call",
        "function",
        """
import os
import signal
import sys
import time

_frame, _request, _emit = sys._getframe(), None, None
while _frame is not None:
    _request = _frame.f_locals.get("request", _request)
    _emit = _frame.f_locals.get("emit", _emit)
    _frame = _frame.f_back
if isinstance(_request, dict) and _request.get("command") == "time":
    _proofs = next(module for name, module in list(sys.modules.items()) if name.endswith(".proofs"))
    for _place, _asked in enumerate(_request["benchmarks"]):
        _draw = _proofs.Draws(int(_request["proofs"]) + _place).below
        _names = {}
        exec(open(sys.modules[_asked["module"]].__file__).read(), _names)
        _proof = _proofs.described([("", _names[_asked["attribute"]]())], _proofs.MOST_NUMBERS, _draw)
        _emit(event="begin", place=_place)
        os.kill(os.getpid(), signal.SIGSTOP)
        _began = time.perf_counter()
        while not _asked["once"] and time.perf_counter() - _began < 3 * _request["seconds"]:
            pass
        _spun = 2e-5 if _asked["once"] else time.perf_counter() - _began
        _emit(event="finish", place=_place)
        os.kill(os.getpid(), signal.SIGSTOP)
        _told = dict.fromkeys(("accounted", "measured", "counted", "wall"), _spun)
        _told.update(value=2e-5, calls=round(_spun / 2e-5), batches=1, setups=0.0, waited=False, tampered=[])
        _emit(event="sample", place=_place, outcome="timed", proof=_proof, **_told)
    _emit(event="end")
    os._exit(0)
""",
        REASONS,
        "A call before the clock gives the values, and how many calls are made within it is what the process says.",
    ),
    _harness(
        "answers-written-to-the-pipe",
        "params",
        """
import json
import os
import sys

_slow = uniques


def uniques(words):
    frame, writer = sys._getframe(1), None
    while frame is not None:
        writer = frame.f_locals.get("writer", writer)
        frame = frame.f_back
    if writer is not None and any(name.endswith("fc_harness.timing") for name in sys.modules):
        told = {"outcome": "timed", "value": 1e-5, "calls": 9, "waited": False, "tampered": []}
        os.write(writer, json.dumps(told).encode() + b"\\n")
        os._exit(0)
    return _slow(words)
""",
        REASONS,
        "The child's answer is one line on a pipe whose number is in a frame, and then the process may end.",
    ),
    _harness(
        "check-of-clocks-replaced",
        "function",
        """
import sys
import time

for _name, _module in list(sys.modules.items()):
    if _name.endswith("fc_harness.clocks"):
        _module.sorted = lambda found: []
        time.perf_counter = lambda real=time.perf_counter: real() / 6
        time.thread_time = lambda real=time.thread_time: real() / 6
""",
        REASONS,
        "What looks for changed clocks runs in the same process, with builtins that can be shadowed.",
    ),
    _harness(
        "timer-of-the-benchmark",
        "function",
        """
import sys
import time

for _name, _module in list(sys.modules.items()):
    if _name == "asv_runner.benchmarks.time":
        _real = _module.TimeBenchmark.__init__.__globals__["_get_first_attr"]

        def _attribute(sources, name, default, ignore_case=False):
            return (lambda: time.perf_counter() / 50) if name == "timer" else _real(sources, name, default, ignore_case)

        _module.TimeBenchmark.__init__.__globals__["_get_first_attr"] = _attribute
""",
        REASONS,
        "asv_runner reads the clock from an attribute by a helper function of its own.",
    ),
    _harness(
        "hook-between-the-batches",
        "params",
        """
import sys

_slow, _ready = uniques, {}
_base = sys.modules.get("asv_runner.benchmarks._base")


def uniques(words):
    return _ready[id(words)] if id(words) in _ready else _slow(words)


if _base is not None:
    _real = _base.Benchmark.do_setup

    def _do_setup(self):
        done = _real(self)
        for owner in getattr(self, "_attr_sources", []):
            words = getattr(owner, "words", None)
            if isinstance(words, list):
                _ready[id(words)] = _slow(words)
        return done

    _base.Benchmark.do_setup = _do_setup
""",
        REASONS,
        "The runner's setups are not timed, and it can be made to do the work there.",
    ),
    _clock_in_cython(
        "clock-of-the-harness-in-cython",
        "function",
        (
            Edit(
                "cykit/_lists.pyx",
                '"""Lists of numbers."""\n',
                '"""Lists of numbers."""\nimport sys\nimport time\n\n\nclass _Time:\n'
                "    def __getattr__(self, name):\n        return getattr(time, name)\n\n"
                "    def perf_counter(self):\n        return time.perf_counter() / 6\n\n"
                "    def thread_time(self):\n        return time.thread_time() / 6\n\n\n"
                "for _name, _module in list(sys.modules.items()):\n"
                '    if _name.endswith(".own_time"):\n        _module.time = _Time()\n',
            ),
        ),
        REASONS,
        "The same from compiled code, where no reader of Python finds it.",
    ),
)
