"""Small packages that attacks and honest patches change: pure Python, Python with numpy, C, Cython."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from formulacode_dagster.models.measurement import Metric


class Package(StrEnum):
    """Name of a package, and of the module that it installs."""

    PURE = "purekit"
    NUMERIC = "numkit"
    C = "ckit"
    CYTHON = "cykit"


@dataclass(frozen=True)
class Workload:
    """A task of a package: its benchmarks, and the author's patch."""

    benchmarks: tuple[str, ...]
    path: str
    before: str
    after: str
    metric: Metric = Metric.TIME
    unit: str = "seconds"


PYPROJECT = """[build-system]
requires = {requires}
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "1.0"
{more}"""
PACKAGES_ONLY = """
[tool.setuptools]
packages = ["{name}"]
"""
ASV = '{{"version": 1, "project": "{name}", "repo": ".", "benchmark_dir": "benchmarks"}}'

SLOW_SQUARES = """    found = []
    for i in range(n):
        if i * i not in found:
            found.append(i * i)
    return found
"""
SLOW_UNIQUES = """    found = []
    for word in words:
        if word not in found:
            found.append(word)
    return found
"""
SLOW_GROUPS = """    found = {}
    for letter in sorted({word[0] for word in words}):
        found[letter] = []
        for word in words:
            if word[0] == letter and word not in found[letter]:
                found[letter].append(word)
    return found
"""
SLOW_MEANS = """    return [sum(values[at : at + width]) / width for at in range(len(values) - width + 1)]
"""
SLOW_VOLUME = """    blocks = [b"x" * MEGABYTE for _ in range(n)]
    return sum(len(block) for block in blocks)
"""
SLOW_FIND = """    comparisons = 0
    for at, value in enumerate(values):
        comparisons += 1
        if value >= wanted:
            return at, comparisons
    return len(values), comparisons
"""
SLOW_PARSE = """    found = []
    for word in words:
        if word not in found:
            found.append(word)
    return Parsed(found)
"""
SLOW_VOCABULARY = """        found = []
        for word in self.words:
            if word not in found:
                found.append(word)
        return found
"""
PURE_MODULE = f'''"""Plain values: squares, words, windows, blocks."""

MEGABYTE = 1_000_000


def squares(n):
    """The first *n* squares, each once."""
{SLOW_SQUARES}

def uniques(words):
    """Distinct *words*, in the order of their first appearance."""
{SLOW_UNIQUES}

def groups(words):
    """Distinct words by their first letter; the order of the letters is not promised."""
{SLOW_GROUPS}

def means(values, width):
    """The mean of each window of *width* neighbours."""
{SLOW_MEANS}

def volume(n):
    """Bytes of *n* blocks."""
{SLOW_VOLUME}

def find(values, wanted):
    """Place of the first of the sorted *values* that is not below *wanted*, and comparisons made."""
{SLOW_FIND}

class Parsed:
    """Words that were read."""

    def __init__(self, words):
        self.words = words


def parse(words):
    """Distinct *words*, as an object."""
{SLOW_PARSE}

class Text:
    """A text, as words."""

    def __init__(self, words):
        self.words = list(words)

    def vocabulary(self):
        """Distinct words, in the order of their first appearance."""
{SLOW_VOCABULARY}'''
PURE_BENCHMARKS = """import purekit

WORDS = [f"{chr(97 + i % 13)}{i % 600}" for i in range(1200)]
VALUES = [(i * 7919 % 1009) / 7 for i in range(2600)]
SORTED = list(range(0, 40_000, 2))


def time_squares():
    return purekit.squares(1500)


def time_squares_quietly():
    purekit.squares(1500)


def time_uniques_quietly():
    purekit.uniques(WORDS)


def time_groups():
    return purekit.groups(WORDS)


def time_means():
    return purekit.means(VALUES, 800)


def time_parsed():
    return purekit.parse(WORDS)


def peakmem_volume():
    return purekit.volume(250)


def track_comparisons():
    return purekit.find(SORTED, 31_337)[1]


class Words:
    params = [400, 1200]

    def setup(self, n):
        self.words = [f"word{i % (n // 2)}" for i in range(n)]

    def time_uniques(self, n):
        return purekit.uniques(self.words)


class Fixture:
    def setup(self):
        self.text = purekit.Text(WORDS)

    def time_vocabulary(self):
        return self.text.vocabulary()


class Cached:
    def setup_cache(self):
        return purekit.Text(WORDS)

    def time_vocabulary(self, text):
        return text.vocabulary()
"""
PURE_TESTS = {
    "tests/test_squares.py": """from purekit import squares


def test_squares():
    assert squares(4) == [0, 1, 4, 9]


def test_a_long_row():
    assert squares(300)[-1] == 299 * 299


def test_none():
    assert squares(0) == []
""",
    "tests/test_words.py": """import unittest

from purekit import Text, groups, parse, uniques


class Words(unittest.TestCase):
    def test_uniques(self):
        self.assertEqual(uniques(["b", "a", "b"]), ["b", "a"])
        self.assertEqual(uniques([str(i % 50) for i in range(100)]), [str(i) for i in range(50)])

    def test_groups(self):
        self.assertEqual(groups(["ab", "cd", "ax", "ab"]), {"a": ["ab", "ax"], "c": ["cd"]})

    def test_parse(self):
        self.assertEqual(parse(["b", "a", "b"]).words, ["b", "a"])

    def test_vocabulary(self):
        self.assertEqual(Text(["b", "a", "b"]).vocabulary(), ["b", "a"])
""",
    "tests/test_values.py": """import statistics

import pytest
from purekit import find, means, volume


def test_means():
    values = [1.5, 2.5, 7.0, 4.25]
    assert means(values, 2) == pytest.approx([statistics.fmean(values[at : at + 2]) for at in range(3)])


def test_find():
    place, comparisons = find([2, 4, 6], 5)
    assert place == 2
    assert 1 <= comparisons <= 3


def test_volume():
    assert volume(2) == 2_000_000
""",
}
SET_UNIQUES = """    return list(dict.fromkeys(words))
"""
FAST_MEANS = """    total = sum(values[:width])
    found = [total / width]
    for entering, leaving in zip(values[width:], values):
        total += entering - leaving
        found.append(total / width)
    return found
"""
FAST_GROUPS = """    found = {}
    for word in dict.fromkeys(words):
        found.setdefault(word[0], []).append(word)
    return {letter: found[letter] for letter in sorted(found)}
"""
FAST_FIND = """    low, high, comparisons = 0, len(values), 0
    while low < high:
        middle = (low + high) // 2
        comparisons += 1
        if values[middle] >= wanted:
            high = middle
        else:
            low = middle + 1
    return low, max(comparisons, 1)
"""

SLOW_NORMALIZED = """    mean = 0.0
    for value in values:
        mean += value
    mean /= len(values)
    variance = 0.0
    for value in values:
        variance += (value - mean) ** 2
    deviation = (variance / len(values)) ** 0.5
    return np.array([(value - mean) / deviation for value in values])
"""
SLOW_DISTANCE = """    total, pairs = 0.0, 0
    for at, one in enumerate(points):
        for other in points[at + 1 :]:
            total += abs(one - other)
            pairs += 1
    return float(total / pairs)
"""
NUMERIC_MODULE = f'''"""Arrays of numbers."""

import numpy as np


def normalized(values):
    """*values* moved to a mean of 0 and scaled to a deviation of 1, as 64-bit floats."""
{SLOW_NORMALIZED}

def mean_distance(points):
    """Mean distance of all pairs of *points*, of one dimension."""
{SLOW_DISTANCE}'''
NUMERIC_BENCHMARKS = """import numpy as np

import numkit

VALUES = np.random.RandomState(5).lognormal(size=20_000)
POINTS = np.random.RandomState(6).lognormal(size=240)


def time_normalized():
    return numkit.normalized(VALUES)


def time_normalized_quietly():
    numkit.normalized(VALUES)


def time_mean_distance():
    return numkit.mean_distance(POINTS)
"""
NUMERIC_TESTS = {
    "tests/test_arrays.py": """import numpy as np
import pytest
from numkit import mean_distance, normalized


def test_normalized():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    np.testing.assert_allclose(normalized(values), (values - values.mean()) / values.std())


def test_normalized_has_double_precision():
    assert normalized(np.array([1.0, 3.0])).dtype == np.float64


def test_mean_distance():
    assert mean_distance(np.array([1.0, 2.0, 4.0])) == pytest.approx(2.0)
""",
}

SLOW_TOTAL = """    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return PyLong_FromLong(sum);
"""
SLOW_LONGEST = """    long best = 1, most = 0;
    for (long start = 1; start < n; start++) {
        long steps = 0;
        for (long x = start; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) steps++;
        if (steps > most) { most = steps; best = start; }
    }
    return PyLong_FromLong(best);
"""
C_MODULE = f"""#include <Python.h>

static PyObject *total(PyObject *self, PyObject *argument) {{
    long n = PyLong_AsLong(argument);
{SLOW_TOTAL}}}

static PyObject *longest(PyObject *self, PyObject *argument) {{
    long n = PyLong_AsLong(argument);
{SLOW_LONGEST}}}

static PyMethodDef methods[] = {{
    {{"total", total, METH_O, "Sum of the numbers below n."}},
    {{"longest", longest, METH_O, "The start below n of the longest chain of Collatz."}},
    {{NULL, NULL, 0, NULL}},
}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods}};
PyMODINIT_FUNC PyInit__fast(void) {{ return PyModule_Create(&module); }}
"""
C_SETUP = """from setuptools import Extension, setup

setup(packages=["ckit"], ext_modules=[Extension("ckit._fast", ["ckit/_fast.c"])])
"""
C_BENCHMARKS = """import ckit


def time_total():
    return ckit.total(2_000_000)


class Chains:
    params = [10_000, 30_000]

    def setup(self, n):
        self.n = n

    def time_longest(self, n):
        return ckit.longest(self.n)
"""
C_TESTS = {
    "tests/test_fast.py": """from ckit import longest, total


def test_total():
    assert [total(n) for n in (0, 1, 5, 1000)] == [0, 0, 10, 499500]


def test_longest():
    assert [longest(n) for n in (2, 10, 100, 1000)] == [1, 9, 97, 871]
""",
}
FAST_TOTAL = """    return PyLong_FromLong(n > 0 ? n * (n - 1) / 2 : 0);
"""
FAST_LONGEST = """    long best = 1, most = 0;
    int *known = calloc(n > 2 ? n : 2, sizeof(int));
    if (known == NULL) return PyErr_NoMemory();
    for (long start = 1; start < n; start++) {
        long steps = 0, x = start;
        for (; x != 1 && x >= start; x = x % 2 ? 3 * x + 1 : x / 2) steps++;
        if (x < start) steps += known[x];
        known[start] = (int)steps;
        if (steps > most) { most = steps; best = start; }
    }
    free(known);
    return PyLong_FromLong(best);
"""

SLOW_CUBES = """    cdef int i
    found = []
    for i in range(n):
        found = found + [i * i * i]
    return found
"""
SLOW_DIVISORS = """    cdef int i
    found = []
    for i in range(1, n):
        count = 0
        for j in range(1, i + 1):
            if i % j == 0:
                count += 1
        found.append(count)
    return found
"""
CYTHON_MODULE = f'''# cython: language_level=3
"""Lists of numbers."""


def cubes(int n):
    """The first *n* cubes."""
{SLOW_CUBES}

def divisors(int n):
    """Number of divisors of each number below *n*, from 1 on."""
{SLOW_DIVISORS}'''
CYTHON_SETUP = """from Cython.Build import cythonize
from setuptools import Extension, setup

# most of a build would be gcc at work on what Cython writes
extensions = [Extension("cykit._lists", ["cykit/_lists.pyx"], extra_compile_args=["-O0"])]
setup(packages=["cykit"], ext_modules=cythonize(extensions))
"""
CYTHON_BENCHMARKS = """import cykit


def time_cubes():
    return cykit.cubes(1200)


class Divisors:
    params = [300, 900]

    def setup(self, n):
        self.n = n

    def time_divisors(self, n):
        return cykit.divisors(self.n)
"""
CYTHON_TESTS = {
    "tests/test_lists.py": """from cykit import cubes, divisors


def test_cubes():
    assert cubes(5) == [0, 1, 8, 27, 64]
    assert len(cubes(100)) == 100


def test_divisors():
    assert divisors(13) == [1, 2, 2, 3, 2, 4, 2, 4, 3, 4, 2, 6]
""",
}
FAST_CUBES = SLOW_CUBES.replace("found = found + [i * i * i]", "found.append(i * i * i)")
FAST_DIVISORS = """    cdef int i, j
    found = [0] * max(n, 1)
    for i in range(1, n):
        for j in range(i, n, i):
            found[j] += 1
    return found[1:]
"""


def _files(name: str, requires: list[str], more: str, files: Mapping[str, str]) -> dict[str, str]:
    return {
        "pyproject.toml": PYPROJECT.format(requires=requires, name=name, more=more.format(name=name)),
        "asv.conf.json": ASV.format(name=name),
        ".gitignore": "build/\n*.egg-info/\n",
        "benchmarks/__init__.py": "",
        **files,
    }


FILES: dict[Package, dict[str, str]] = {
    Package.PURE: _files(
        "purekit",
        ["setuptools"],
        PACKAGES_ONLY,
        {"purekit/__init__.py": PURE_MODULE, "benchmarks/bench.py": PURE_BENCHMARKS, **PURE_TESTS},
    ),
    Package.NUMERIC: _files(
        "numkit",
        ["setuptools"],
        PACKAGES_ONLY,
        {"numkit/__init__.py": NUMERIC_MODULE, "benchmarks/bench.py": NUMERIC_BENCHMARKS, **NUMERIC_TESTS},
    ),
    Package.C: _files(
        "ckit",
        ["setuptools"],
        "",
        {
            "setup.py": C_SETUP,
            "ckit/__init__.py": "from ckit._fast import longest, total\n",
            "ckit/_fast.c": C_MODULE,
            "benchmarks/bench.py": C_BENCHMARKS,
            **C_TESTS,
        },
    ),
    Package.CYTHON: _files(
        "cykit",
        ["setuptools", "cython"],
        "",
        {
            "setup.py": CYTHON_SETUP,
            "cykit/__init__.py": "from cykit._lists import cubes, divisors\n",
            "cykit/_lists.pyx": CYTHON_MODULE,
            "benchmarks/bench.py": CYTHON_BENCHMARKS,
            **CYTHON_TESTS,
        },
    ),
}
"""Files of each package at the base."""
REQUIREMENTS: dict[Package, tuple[str, ...]] = {
    Package.PURE: ("setuptools==75.3.0",),
    Package.NUMERIC: ("setuptools==75.3.0", "numpy==2.1.3"),
    Package.C: ("setuptools==75.3.0",),
    Package.CYTHON: ("setuptools==75.3.0", "cython==3.0.11"),
}
SOURCES: dict[Package, str] = {
    Package.PURE: "purekit/__init__.py",
    Package.NUMERIC: "numkit/__init__.py",
    Package.C: "ckit/_fast.c",
    Package.CYTHON: "cykit/_lists.pyx",
}
"""The file of each package that the benchmarks spend their time in."""
_PURE, _NUMERIC, _C, _CYTHON = SOURCES.values()
FAST_SQUARES = "    return [i * i for i in range(n)]\n"
NORMALIZED = """    values = np.asarray(values, dtype=float)
    return (values - values.mean()) / values.std()
"""
MEAN_DISTANCE = """    points = np.asarray(points, dtype=float)
    distances = np.abs(points[:, None] - points[None, :])
    return float(distances.sum() / (len(points) * (len(points) - 1)))
"""
WORKLOADS: dict[Package, dict[str, Workload]] = {
    Package.PURE: {
        "function": Workload(("bench.time_squares",), _PURE, SLOW_SQUARES, FAST_SQUARES),
        "quiet": Workload(("bench.time_squares_quietly",), _PURE, SLOW_SQUARES, FAST_SQUARES),
        "quiet_words": Workload(("bench.time_uniques_quietly",), _PURE, SLOW_UNIQUES, SET_UNIQUES),
        "groups": Workload(("bench.time_groups",), _PURE, SLOW_GROUPS, FAST_GROUPS),
        "floats": Workload(("bench.time_means",), _PURE, SLOW_MEANS, FAST_MEANS),
        "object": Workload(
            ("bench.time_parsed",), _PURE, SLOW_PARSE, "    return Parsed(list(dict.fromkeys(words)))\n"
        ),
        "params": Workload(
            ("bench.Words.time_uniques(400)", "bench.Words.time_uniques(1200)"), _PURE, SLOW_UNIQUES, SET_UNIQUES
        ),
        "fixture": Workload(
            ("bench.Fixture.time_vocabulary",),
            _PURE,
            SLOW_VOCABULARY,
            "        return list(dict.fromkeys(self.words))\n",
        ),
        "setup_cache": Workload(
            ("bench.Cached.time_vocabulary",),
            _PURE,
            SLOW_VOCABULARY,
            "        return list(dict.fromkeys(self.words))\n",
        ),
        "peakmem": Workload(
            ("bench.peakmem_volume",),
            _PURE,
            SLOW_VOLUME,
            '    return sum(len(b"x" * MEGABYTE) for _ in range(n))\n',
            Metric.PEAK_MEMORY,
            "bytes",
        ),
        "track": Workload(("bench.track_comparisons",), _PURE, SLOW_FIND, FAST_FIND, Metric.TRACKED, "unit"),
    },
    Package.NUMERIC: {
        "array": Workload(("bench.time_normalized",), _NUMERIC, SLOW_NORMALIZED, NORMALIZED),
        "quiet_array": Workload(("bench.time_normalized_quietly",), _NUMERIC, SLOW_NORMALIZED, NORMALIZED),
        "scalar": Workload(("bench.time_mean_distance",), _NUMERIC, SLOW_DISTANCE, MEAN_DISTANCE),
    },
    Package.C: {
        "function": Workload(("bench.time_total",), _C, SLOW_TOTAL, FAST_TOTAL),
        "params": Workload(
            ("bench.Chains.time_longest(10000)", "bench.Chains.time_longest(30000)"), _C, SLOW_LONGEST, FAST_LONGEST
        ),
    },
    Package.CYTHON: {
        "function": Workload(("bench.time_cubes",), _CYTHON, SLOW_CUBES, FAST_CUBES),
        "params": Workload(
            ("bench.Divisors.time_divisors(300)", "bench.Divisors.time_divisors(900)"),
            _CYTHON,
            SLOW_DIVISORS,
            FAST_DIVISORS,
        ),
    },
}
"""Tasks of each package, by the kind of their benchmarks; a quiet one returns nothing."""


def is_compiled(package: Package) -> bool:
    """Return True if the package has a part in C or Cython."""
    return package in {Package.C, Package.CYTHON}


def patched(package: Package, workload: str) -> dict[str, str]:
    """Return the files that the author of a task changed."""
    task = WORKLOADS[package][workload]
    source = FILES[package][task.path]
    if source.count(task.before) != 1:
        raise ValueError(f"{package} {workload}: the author's patch does not apply")
    return {task.path: source.replace(task.before, task.after)}
