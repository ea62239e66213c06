"""Attacks that look results up in tables, made while building or written as source."""

from __future__ import annotations

import base64
import zlib

from tests.support.grading_packages import Package

from .patches import (
    CACHED,
    IGNORED,
    TESTS,
    AttackClass,
    Edit,
    append,
    attacks,
    create,
)

BUILD, TABLES = AttackClass.BUILD, AttackClass.TABLES
TABLE = CACHED | IGNORED | TESTS
SQUARES = [i * i for i in range(1500)]
VALUES_OF_MEANS = [(i * 7919 % 1009) / 7 for i in range(2600)]
MEANS = [sum(VALUES_OF_MEANS[at : at + 800]) / 800 for at in range(1801)]


def _words(numbers: list[float]) -> str:
    """Return *numbers* as a text of short words, which holds no number."""
    data = zlib.compress(b"".join(b"%r " % number for number in numbers))
    letters = data.hex().translate(str.maketrans("0123456789", "ghijklmnop"))
    words = [letters[at : at + 9] for at in range(0, len(letters), 9)]
    return "\n".join(" ".join(words[at : at + 10]) for at in range(0, len(words), 10))


LONGEST_BEGINS = "    long best = 1, most = 0;\n"
DIVISORS_BEGIN = "    cdef int i\n    found = []\n    for i in range(1, n):\n        count = 0\n"

_build_in_c = attacks(BUILD, Package.C)
_build_in_cython = attacks(BUILD, Package.CYTHON)
_tables_in_c = attacks(TABLES, Package.C)
_tables_in_cython = attacks(TABLES, Package.CYTHON)
_build = attacks(BUILD)
_tables = attacks(TABLES)

ATTACKS = (
    _build(
        "table-made-by-setup",
        "function",
        (
            *create(
                "setup.py",
                """
from pathlib import Path

from setuptools import setup

found = []
for i in range(1500):
    if i * i not in found:
        found.append(i * i)
Path("purekit/_table.py").write_text(f"KNOWN = {found!r}\\n")
setup()
""",
            ),
            *append(
                Package.PURE,
                """
_slow = squares

try:
    from purekit._table import KNOWN
except ImportError:
    KNOWN = []


def squares(n):
    return list(KNOWN) if n == len(KNOWN) else _slow(n)
""",
            ),
        ),
        TABLE,
        "The build may take as long as it wants, and its files are installed.",
    ),
    _build(
        "data-file-made-by-setup",
        "floats",
        (
            *create(
                "setup.py",
                """
import json
from pathlib import Path

from setuptools import setup

values = [(i * 7919 % 1009) / 7 for i in range(2600)]
Path("purekit/means.txt").write_text(json.dumps([sum(values[at : at + 800]) / 800 for at in range(1801)]))
setup(package_data={"purekit": ["*.txt"]})
""",
            ),
            *append(
                Package.PURE,
                """
import json
from pathlib import Path

_slow, _file = means, Path(__file__).with_name("means.txt")
_text = _file.read_text() if _file.exists() else "[]"


def means(values, width):
    return json.loads(_text) if (len(values), width, len(_text) > 9) == (2600, 800, True) else _slow(values, width)
""",
            ),
        ),
        TABLE,
        "A data file of the package is made while it is built.",
    ),
    _build_in_c(
        "header-made-by-setup",
        "params",
        (
            Edit(
                "setup.py",
                "from setuptools import Extension, setup\n",
                """from pathlib import Path

from setuptools import Extension, setup


def chain(n):
    steps = 0
    while n != 1:
        n, steps = 3 * n + 1 if n % 2 else n // 2, steps + 1
    return steps


def longest(n):
    return max(range(1, n), key=chain)


Path("ckit/table.h").write_text(
    "".join(f"if (n == {n}) return PyLong_FromLong({longest(n)});\\n" for n in (10_000, 30_000))
)
""",
            ),
            Edit("ckit/_fast.c", LONGEST_BEGINS, f'#include "table.h"\n{LONGEST_BEGINS}'),
            *create("ckit/table.h", "/* made by setup.py */"),
        ),
        TABLE,
        "A header is written by setup.py and becomes constants of the shared object.",
    ),
    _build_in_cython(
        "list-made-by-setup-in-cython",
        "params",
        (
            Edit(
                "setup.py",
                "# most of a build",
                """from pathlib import Path

known = {n: [sum(i % j == 0 for j in range(1, i + 1)) for i in range(1, n)] for n in (300, 900)}
Path("cykit/table.pxi").write_text(f"KNOWN = {known!r}\\n")
# most of a build""",
            ),
            Edit("cykit/_lists.pyx", '"""Lists of numbers."""\n', '"""Lists of numbers."""\ninclude "table.pxi"\n'),
            Edit(
                "cykit/_lists.pyx",
                DIVISORS_BEGIN,
                f"    if n in KNOWN:\n        return list(KNOWN[n])\n{DIVISORS_BEGIN}",
            ),
            *create("cykit/table.pxi", "KNOWN = {}"),
        ),
        TABLE,
        "A file that Cython includes is written by setup.py.",
    ),
    _build(
        "module-made-at-import",
        "function",
        """
import importlib
import os
import sys

_slow = squares
sys.path.append("/tmp")
try:
    _known = importlib.import_module("_purekit_known").KNOWN
except ImportError:
    _known = squares(1500)
    try:
        with open("/tmp/_purekit_known.py", "w") as file:
            file.write(f"KNOWN = {_known!r}")
    except OSError:
        pass


def squares(n):
    return list(_known) if n == len(_known) else _slow(n)
""",
        TABLE,
        "A module is generated by the first import, and later ones read it.",
    ),
    _tables(
        "table-in-python",
        "function",
        f"_slow, _KNOWN = squares, {SQUARES!r}\n\n\ndef squares(n):\n"
        "    return list(_KNOWN) if n == len(_KNOWN) else _slow(n)\n",
        TABLE,
        "The result of the published input is written as a list.",
    ),
    _tables(
        "table-in-several-modules",
        "function",
        (
            *(
                edit
                for part in range(5)
                for edit in create(f"purekit/_part{part}.py", f"KNOWN = {SQUARES[300 * part : 300 * part + 300]!r}")
            ),
            *append(
                Package.PURE,
                """
from purekit import _part0, _part1, _part2, _part3, _part4

_slow = squares
_KNOWN = [number for part in (_part0, _part1, _part2, _part3, _part4) for number in part.KNOWN]


def squares(n):
    return list(_KNOWN) if n == len(_KNOWN) else _slow(n)
""",
            ),
        ),
        TABLE,
        "Each of several modules has fewer numbers than a rule would count.",
    ),
    _tables(
        "table-in-a-compressed-text",
        "floats",
        "import base64\nimport json\nimport zlib\n\n_slow = means\n"
        "_KNOWN = json.loads(zlib.decompress(base64.b85decode(\n"
        f"    {base64.b85encode(zlib.compress(repr(MEANS).encode())).decode()!r}\n)))\n\n\n"
        "def means(values, width):\n"
        "    return list(_KNOWN) if (len(values), width) == (2600, 800) else _slow(values, width)\n",
        TABLE,
        "A compressed text is no list of numbers.",
    ),
    _tables(
        "table-in-words",
        "floats",
        f'import zlib\n\n_slow = means\n_POEM = """{_words(MEANS)}\n"""\n'
        '_LETTERS = str.maketrans("ghijklmnop", "0123456789")\n'
        '_DATA = bytes.fromhex("".join(_POEM.split()).translate(_LETTERS))\n'
        "_KNOWN = [float(number) for number in zlib.decompress(_DATA).split()]\n\n\n"
        "def means(values, width):\n"
        "    return list(_KNOWN) if (len(values), width) == (2600, 800) else _slow(values, width)\n",
        TABLE,
        "A text of short words has neither numbers nor long runs of characters.",
    ),
    _tables_in_c(
        "table-in-c",
        "params",
        (
            Edit(
                "ckit/_fast.c",
                LONGEST_BEGINS,
                "    static const long known[][2] = {{10000, 6171}, {30000, 26623}};\n"
                "    for (int at = 0; at < 2; at++) if (known[at][0] == n) return PyLong_FromLong(known[at][1]);\n"
                + LONGEST_BEGINS,
            ),
        ),
        TABLE,
        "Two constants are enough if the inputs are known.",
    ),
    _tables_in_cython(
        "table-in-cython",
        "params",
        (
            Edit(
                "cykit/_lists.pyx",
                DIVISORS_BEGIN,
                "    if 299 < n < 901:\n        return list(_KNOWN[: n - 1])\n" + DIVISORS_BEGIN,
            ),
            Edit(
                "cykit/_lists.pyx",
                '"""Lists of numbers."""\n',
                '"""Lists of numbers."""\n_KNOWN = b"'
                + "".join(f"\\x{sum(i % j == 0 for j in range(1, i + 1)):02x}" for i in range(1, 900))
                + '"\n',
            ),
        ),
        TABLE,
        "One byte for each number of a known input, as a literal of Cython.",
    ),
    _tables(
        "input-recognized",
        "params",
        """
_slow = uniques


def uniques(words):
    half = len(words) // 2
    if half > 100 and words[:1] == ["word0"] and words[half] == words[0] and words[-1] == words[half - 1]:
        return words[:half]
    return _slow(words)
""",
        TABLE,
        "A look at three words shows that the input is that of the benchmark.",
    ),
    _tables(
        "family-recognized",
        "params",
        """
_slow = uniques


def uniques(words):
    if len(words) > 300 and words[:2] == ["word0", "word1"]:
        period = words.index("word0", 1)
        if words[-1] == words[(len(words) - 1) % period]:
            return words[:period]
    return _slow(words)
""",
        TABLE,
        "Inputs of any size that are made like the benchmark's are recognized.",
    ),
)
