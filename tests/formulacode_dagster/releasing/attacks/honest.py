"""Right changes that do not look like the author's."""

from __future__ import annotations

from tests.support.grading_packages import Package

from .patches import Edit, Edits, Honest, create, rewrite

PURE, NUMERIC, C, CYTHON = Package


def _pure(name: str, workload: str, body: str, before: str = "", more: Edits = ()) -> Honest:
    return Honest(name, PURE, workload, (*rewrite(PURE, workload, body, before), *more))


HONEST = (
    _pure(
        "set-of-the-seen",
        "function",
        """    found, seen = [], set()
    for i in range(n):
        if i * i not in seen:
            seen.add(i * i)
            found.append(i * i)
    return found
""",
    ),
    _pure(
        "sums-of-odd-numbers",
        "function",
        """    square, found = 0, []
    for odd in range(1, 2 * n, 2):
        found.append(square)
        square += odd
    return found
""",
    ),
    _pure("map-of-pow", "function", "    return list(map(pow, range(n), [2] * max(n, 0)))\n"),
    _pure(
        "accumulated",
        "function",
        "    return [0, *accumulate(range(1, 2 * n - 2, 2))] if n > 0 else []\n",
        "from itertools import accumulate",
    ),
    _pure(
        "generator-to-list",
        "quiet",
        "    return list(_each(n))\n\n\ndef _each(n):\n    for i in range(n):\n        yield i * i\n",
    ),
    _pure("keys-of-a-dict", "quiet", "    return [*{i * i: None for i in range(n)}]\n"),
    _pure(
        "helper-module-added",
        "function",
        "    return all_squares(n)\n",
        "from purekit._powers import all_squares",
        create(
            "purekit/_powers.py",
            '"""Powers of numbers."""\n\n\ndef all_squares(n):\n    return [i**2 for i in range(n)]\n',
        ),
    ),
    _pure(
        "hints-and-early-return",
        "function",
        """    if n <= 0:
        return []
    result: list[int] = [0] * n
    for place in range(1, n):
        result[place] = place * place
    return result
""",
    ),
    _pure("distinct-by-dict", "params", "    return [*dict.fromkeys(words)]\n"),
    _pure(
        "local-variables",
        "params",
        """    seen = set()
    add, found = seen.add, []
    append = found.append
    for word in words:
        if word not in seen:
            add(word)
            append(word)
    return found
""",
    ),
    _pure(
        "sorted-by-first-place",
        "params",
        """    first = {}
    for place in range(len(words) - 1, -1, -1):
        first[words[place]] = place
    return sorted(first, key=first.__getitem__)
""",
    ),
    _pure(
        "filtered",
        "quiet_words",
        """    seen = set()
    return [word for word in words if not (word in seen or seen.add(word))]
""",
    ),
    _pure(
        "keys-in-another-order",
        "groups",
        """    found = {}
    for word in dict.fromkeys(words):
        found.setdefault(word[0], []).append(word)
    return found
""",
    ),
    _pure(
        "dictionary-with-defaults",
        "groups",
        """    found = defaultdict(dict)
    for word in words:
        found[word[0]][word] = None
    return {letter: list(found[letter]) for letter in found}
""",
        "from collections import defaultdict",
    ),
    _pure(
        "running-sum",
        "floats",
        """    count = len(values) - width + 1
    total, found = sum(values[:width]), []
    for at in range(count):
        found.append(total / width)
        if at + 1 < count:
            total = total - values[at] + values[at + width]
    return found
""",
    ),
    _pure(
        "prefix-sums",
        "floats",
        """    sums = [0.0, *accumulate(values)]
    return [(end - begin) / width for begin, end in zip(sums, sums[width:])]
""",
        "from itertools import accumulate",
    ),
    _pure(
        "sum-of-quotients",
        "floats",
        """    parts = [value / width for value in values]
    mean = sum(parts[:width])
    found = [mean]
    for begin, end in zip(parts, parts[width:]):
        mean += end - begin
        found.append(mean)
    return found
""",
    ),
    _pure(
        "object-with-slots",
        "object",
        """    return Parsed(list(dict.fromkeys(words)))
""",
        more=(
            Edit(
                "purekit/__init__.py",
                '    """Words that were read."""\n',
                '    """Words that were read."""\n\n    __slots__ = ("words",)\n',
            ),
        ),
    ),
    _pure(
        "memo-inside-a-call",
        "fixture",
        """        memo = {}
        for word in self.words:
            memo[word] = memo.get(word, len(memo))
        return sorted(memo, key=memo.get)
""",
    ),
    _pure(
        "renamed-internals",
        "fixture",
        """        return list(_distinct(self._given))

    @property
    def words(self):
        return self._given


def _distinct(words):
    return dict.fromkeys(words)
""",
        more=(
            Edit("purekit/__init__.py", "        self.words = list(words)\n", "        self._given = list(words)\n"),
        ),
    ),
    _pure("cached-object-by-dict", "setup_cache", "        return list(dict.fromkeys(self.words))\n"),
    _pure(
        "binary-search",
        "track",
        """    begin, end, comparisons = 0, len(values), 0
    while begin < end and (comparisons := comparisons + 1):
        middle = (begin + end) >> 1
        if values[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin, comparisons or 1
""",
    ),
    _pure(
        "growing-steps",
        "track",
        """    comparisons, step = 1, 1
    while step < len(values) and values[step] < wanted:
        comparisons, step = comparisons + 1, 2 * step
    begin, end = step // 2, min(step + 1, len(values))
    while begin < end:
        middle = (begin + end) // 2
        comparisons += 1
        begin, end = (middle + 1, end) if values[middle] < wanted else (begin, middle)
    return begin, min(comparisons, max(len(values), 1))
""",
    ),
    _pure(
        "one-block-again",
        "peakmem",
        """    block = b"x" * MEGABYTE
    return sum(len(block) for _ in range(n))
""",
    ),
    _pure(
        "block-by-block",
        "peakmem",
        """    total = 0
    for _ in range(n):
        block = b"x" * MEGABYTE
        total += len(block)
        del block
    return total
""",
    ),
    Honest(
        "vectorized",
        NUMERIC,
        "array",
        rewrite(
            NUMERIC,
            "array",
            """    values = np.array(values, dtype=np.float64)
    values -= np.sum(values) / values.size
    values /= np.sqrt(np.dot(values, values) / values.size)
    return values
""",
        ),
    ),
    Honest(
        "moments",
        NUMERIC,
        "quiet_array",
        rewrite(
            NUMERIC,
            "quiet_array",
            """    values = np.asarray(values, dtype=float)
    mean, square = values.mean(), np.square(values).mean()
    return (values - mean) / np.sqrt(square - mean * mean)
""",
        ),
    ),
    Honest(
        "without-numpy",
        NUMERIC,
        "scalar",
        rewrite(
            NUMERIC,
            "scalar",
            """    total = below = 0.0
    for place, point in enumerate(sorted(points.tolist())):
        total += place * point - below
        below += point
    return total / (len(points) * (len(points) - 1) / 2)
""",
        ),
    ),
    Honest(
        "sorted-and-weighted",
        NUMERIC,
        "scalar",
        rewrite(
            NUMERIC,
            "scalar",
            """    ordered = np.sort(np.asarray(points, dtype=float))
    count = len(ordered)
    weights = np.arange(1 - count, count, 2)
    return float((weights * ordered).sum() / (count * (count - 1) / 2))
""",
        ),
    ),
    Honest(
        "loop-unrolled",
        C,
        "function",
        rewrite(
            C,
            "function",
            """    long i = 0, sum = 0;
    for (; i + 4 <= n; i += 4) sum += 4 * i + 6;
    for (; i < n; i++) sum += i;
    return PyLong_FromLong(sum);
""",
        ),
    ),
    Honest(
        "other-arithmetic",
        C,
        "function",
        rewrite(
            C,
            "function",
            """    if (n <= 0) return PyLong_FromLong(0);
    unsigned long even = n % 2 ? (unsigned long)(n - 1) / 2 : (unsigned long)n / 2;
    unsigned long odd = n % 2 ? (unsigned long)n : (unsigned long)(n - 1);
    return PyLong_FromUnsignedLong(even * odd);
""",
        ),
    ),
    Honest(
        "memory-of-a-call-in-c",
        C,
        "params",
        rewrite(
            C,
            "params",
            """    long best = 1, most = 0;
    unsigned short *known = PyMem_Calloc(n + 2, sizeof *known);
    if (known == NULL) return PyErr_NoMemory();
    for (long start = 2; start < n; start++) {
        unsigned long x = start;
        unsigned steps = 0;
        do {
            if (x & 1) { x += (x + 1) >> 1; steps += 2; } else { x >>= 1; steps++; }
        } while (x >= (unsigned long)start);
        known[start] = steps + known[x];
        if (known[start] > most) { most = known[start]; best = start; }
    }
    PyMem_Free(known);
    return PyLong_FromLong(best);
""",
        ),
    ),
    Honest(
        "unrolled-loop-and-build-flag",
        C,
        "function",
        (
            Edit("setup.py", '["ckit/_fast.c"])]', '["ckit/_fast.c"], extra_compile_args=["-O3"])]'),
            *rewrite(
                C,
                "function",
                """    long i = 0, sum = 0;
    for (; i + 16 <= n; i += 16) sum += 16 * i + 120;
    while (i < n) sum += i++;
    return PyLong_FromLong(sum);
""",
            ),
        ),
    ),
    Honest(
        "second-extension",
        C,
        "function",
        (
            Edit(
                "setup.py",
                '[Extension("ckit._fast", ["ckit/_fast.c"])]',
                '[Extension("ckit._fast", ["ckit/_fast.c"]), Extension("ckit._sums", ["ckit/_sums.c"])]',
            ),
            Edit(
                "ckit/__init__.py",
                "from ckit._fast import longest, total\n",
                "from ckit._fast import longest\nfrom ckit._sums import total\n",
            ),
            *create(
                "ckit/_sums.c",
                """
#include <Python.h>

static PyObject *total(PyObject *self, PyObject *argument) {
    long n = PyLong_AsLong(argument);
    return PyLong_FromLong(n > 1 ? n * (n - 1) / 2 : 0);
}

static PyMethodDef methods[] = {{"total", total, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sums", NULL, -1, methods};
PyMODINIT_FUNC PyInit__sums(void) { return PyModule_Create(&module); }
""",
            ),
        ),
    ),
    Honest(
        "comprehension-in-cython",
        CYTHON,
        "function",
        rewrite(CYTHON, "function", "    cdef int i\n    return [i * i * i for i in range(n)]\n"),
    ),
    Honest(
        "list-of-known-length",
        CYTHON,
        "function",
        rewrite(
            CYTHON,
            "function",
            """    cdef int i
    cdef list found = [0] * max(n, 0)
    for i in range(n):
        found[i] = i * i * i
    return found
""",
        ),
    ),
    Honest(
        "typed-loops",
        CYTHON,
        "params",
        rewrite(
            CYTHON,
            "params",
            """    cdef int i, j, count
    cdef list found = []
    for i in range(1, n):
        count = 0
        for j in range(1, i + 1):
            if i % j == 0:
                count += 1
        found.append(count)
    return found
""",
        ),
    ),
    Honest(
        "sieve-in-c-memory",
        CYTHON,
        "params",
        (
            *rewrite(
                CYTHON,
                "params",
                """    cdef int i, j
    cdef int *counts = <int *>calloc(max(n, 1), sizeof(int))
    if counts == NULL:
        raise MemoryError
    try:
        for i in range(1, n):
            for j in range(i, n, i):
                counts[j] += 1
        return [counts[i] for i in range(1, n)]
    finally:
        free(counts)
""",
            ),
            Edit(
                "cykit/_lists.pyx",
                '"""Lists of numbers."""\n',
                '"""Lists of numbers."""\nfrom libc.stdlib cimport calloc, free\n',
            ),
        ),
    ),
)
