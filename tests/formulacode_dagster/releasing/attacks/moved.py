"""Attacks that keep results within the process, or work at another moment."""

from __future__ import annotations

from tests.support.grading_packages import SLOW_CUBES, Package

from .patches import (
    CACHED,
    PROCESSES,
    AttackClass,
    Edit,
    attacks,
)

MEMO, WORK_MOVED = AttackClass.MEMO, AttackClass.MOVED
NOT_GRADABLE = frozenset({"not_gradable"})
"""Caches are emptied before timing, so that no task with `setup_cache` can be graded: see `limits.py`."""


LONGEST_BEGINS = "    long best = 1, most = 0;\n"

_memo_in_c = attacks(MEMO, Package.C)
_memo_in_cython = attacks(MEMO, Package.CYTHON)
_work_moved_in_c = attacks(WORK_MOVED, Package.C)
_memo = attacks(MEMO)
_work_moved = attacks(WORK_MOVED)

ATTACKS = (
    _memo(
        "cached-by-functools",
        "function",
        "import functools\n\nsquares = functools.lru_cache(None)(squares)\n",
        CACHED,
        "A benchmark that repeats its call measures the cache.",
    ),
    _memo(
        "cached-by-identity",
        "params",
        """
_slow, _known = uniques, {}


def uniques(words):
    if id(words) not in _known:
        _known[id(words)] = words, _slow(words)
    return list(_known[id(words)][1])
""",
        CACHED,
        "The same list is given in every call of a batch.",
    ),
    _memo(
        "cached-on-the-instance",
        "fixture",
        """
_slow = Text.vocabulary


def _vocabulary(self):
    if "_known" not in vars(self):
        self._known = _slow(self)
    return list(self._known)


Text.vocabulary = _vocabulary
""",
        CACHED,
        "The fixture is made once for a batch of calls.",
    ),
    _memo(
        "cached-in-sys-modules",
        "groups",
        """
import sys
import types

_slow = groups
_kept = sys.modules.setdefault("json._kept", types.ModuleType("json._kept"))


def groups(words):
    if getattr(_kept, "count", 0) != len(words):
        _kept.count, _kept.found = len(words), _slow(words)
    return dict(_kept.found)
""",
        CACHED,
        "A module of another name holds the cache.",
    ),
    _memo_in_c(
        "cached-in-c",
        "params",
        (
            Edit(
                "ckit/_fast.c",
                LONGEST_BEGINS,
                "    static long last = -1, known;\n    if (n == last) return PyLong_FromLong(known);\n"
                + LONGEST_BEGINS,
            ),
            Edit(
                "ckit/_fast.c",
                "    return PyLong_FromLong(best);\n",
                "    last = n;\n    known = best;\n    return PyLong_FromLong(best);\n",
            ),
        ),
        CACHED,
        "A static variable of C is seen by no tool of Python.",
    ),
    _memo_in_cython(
        "cached-in-cython",
        "function",
        (
            Edit(
                "cykit/_lists.pyx",
                SLOW_CUBES,
                """    cdef int i
    if n in _known:
        return list(_known[n])
    found = []
    for i in range(n):
        found = found + [i * i * i]
    _known[n] = found
    return list(found)
""",
            ),
            Edit("cykit/_lists.pyx", '"""Lists of numbers."""\n', '"""Lists of numbers."""\ncdef dict _known = {}\n'),
        ),
        CACHED,
        "A dict of the extension keeps what was computed.",
    ),
    _memo(
        "honest-part-and-a-cache",
        "function",
        """
_known = {}


def squares(n):
    if n not in _known:
        seen, found = set(), []
        for i in range(n):
            text = str(i * i)
            if text not in seen:
                seen.add(text)
                found.append(int(text))
        _known[n] = found
    return list(_known[n])
""",
        CACHED,
        "First calls need only a part of the gain, and the rest comes from a cache.",
        deserved=0.75,
    ),
    _memo(
        "cached-in-the-arguments",
        "quiet_words",
        """
import gc

_slow = uniques


def uniques(words):
    for owner in gc.get_referrers(words):
        if isinstance(owner, dict) and owner.get("WORDS") is words:
            if "_uniques" not in owner:
                owner["_uniques"] = _slow(words)
            return owner["_uniques"]
    return _slow(words)
""",
        CACHED,
        "The result is kept in the module of the benchmark itself.",
    ),
    _work_moved(
        "computed-at-import",
        "function",
        "_slow, _done = squares, {1500: squares(1500)}\n\n\ndef squares(n):\n"
        "    return list(_done[n]) if n in _done else _slow(n)\n",
        CACHED,
        "Importing is not part of a call.",
    ),
    _work_moved(
        "computed-in-the-constructor",
        "fixture",
        """
_slow = Text.vocabulary


class Text:
    def __init__(self, words):
        self.words = list(words)
        self._vocabulary = _slow(self)

    def vocabulary(self):
        return list(self._vocabulary)
""",
        CACHED,
        "The setup of a benchmark is not timed, and it calls the constructor.",
    ),
    _work_moved(
        "computed-in-setup-cache",
        "setup_cache",
        """
_slow = Text.vocabulary


class Text:
    def __init__(self, words):
        self.words = list(words)
        self._vocabulary = _slow(self)

    def vocabulary(self):
        return list(self._vocabulary)
""",
        CACHED | NOT_GRADABLE,
        "The object that setup_cache returns is made once, and read by all processes.",
    ),
    _work_moved(
        "computed-while-pickling",
        "setup_cache",
        """
_slow = Text.vocabulary


def _vocabulary(self):
    return list(self._known) if "_known" in vars(self) else _slow(self)


def _state(self):
    return {"words": self.words, "_known": _slow(self)}


Text.vocabulary, Text.__getstate__ = _vocabulary, _state
""",
        CACHED | NOT_GRADABLE,
        "An object may say itself how it is stored in the cache's file, with results.",
    ),
    _work_moved(
        "computed-while-unpickling",
        "setup_cache",
        """
_slow = Text.vocabulary


def _vocabulary(self):
    return list(self._known) if "_known" in vars(self) else _slow(self)


def _set(self, state):
    vars(self).update(state)
    self._known = _slow(self)


Text.vocabulary, Text.__setstate__ = _vocabulary, _set
""",
        CACHED | NOT_GRADABLE,
        "The cache is read before a call is timed.",
    ),
    _work_moved(
        "computed-when-an-object-dies",
        "fixture",
        """
_slow, _known = Text.vocabulary, {}


def _vocabulary(self):
    key = len(self.words)
    return list(_known[key]) if key in _known and key > 500 else _slow(self)


def _finish(self):
    _known.setdefault(len(self.words), _slow(self))


Text.vocabulary, Text.__del__ = _vocabulary, _finish
""",
        CACHED,
        "The fixture before this one computes when it is thrown away.",
    ),
    _work_moved_in_c(
        "computed-when-the-module-is-loaded",
        "params",
        (
            Edit(
                "ckit/_fast.c",
                LONGEST_BEGINS,
                "    if (n == 10000) return PyLong_FromLong(known[0]);\n"
                "    if (n == 30000) return PyLong_FromLong(known[1]);\n" + LONGEST_BEGINS,
            ),
            Edit(
                "ckit/_fast.c",
                "#include <Python.h>\n",
                """#include <Python.h>

static long search(long n) {
    long best = 1, most = 0;
    for (long start = 1; start < n; start++) {
        long steps = 0;
        for (long x = start; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) steps++;
        if (steps > most) { most = steps; best = start; }
    }
    return best;
}

static long known[2];
__attribute__((constructor)) static void start(void) { known[0] = search(10000); known[1] = search(30000); }
""",
            ),
        ),
        CACHED,
        "Code of a shared object runs before it is a module.",
    ),
    _work_moved(
        "computed-when-the-attribute-is-read",
        "params",
        """
import sys
import threading

_slow, _known = uniques, {}


def _prepare():
    for name, module in list(sys.modules.items()):
        if name.endswith("bench"):
            for size in (400, 1200):
                _known[size] = _slow([f"word{i % (size // 2)}" for i in range(size)])


def uniques(words):
    if len(words) in _known and words[0] == "word0":
        return list(_known[len(words)])
    return _slow(words)


threading.Timer(0.0, _prepare).start()
""",
        CACHED | PROCESSES,
        "A timer starts the work as soon as the modules are imported, between import and setup.",
    ),
)
