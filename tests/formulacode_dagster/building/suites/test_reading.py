"""The static reading of suites, held against what asv_runner itself discovers in the same files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from formulacode_dagster.building.suites.archive import harness_archive
from formulacode_dagster.building.suites.reading import read_suite

SUITE = {
    "pkg/core.py": "def time_elsewhere(): pass\n",
    "bench/__init__.py": "def time_top(): pass\n",
    "bench/common.py": """
import abc


class Base:
    def time_inherited(self): pass
    def time_replaced(self): pass
    def time_dropped(self): pass
    def setup(self): pass


class Interface(abc.ABC):
    @abc.abstractmethod
    def time_required(self): pass
    def time_given(self): pass


def track_shared(): return 1


def mem_shared(): pass


class _Hidden:
    def time_hidden(self): pass
""",
    "bench/plain.py": """
from asv_runner.benchmarks.mark import skip_benchmark, skip_for_params

from .common import Base, Interface, _Hidden


def helper(): pass


def time_function(): pass


def timeless(): pass


def _time_private(): pass


class TimeSuite(Base):
    time_dropped = None
    time_alias = helper
    time_lambda = lambda self: 1
    time_number = 3

    def time_replaced(self): pass
    def peakmem_much(self): pass
    def track_size(self): return 1
    def timeraw_code(self): return ""
    def TimeOld(self): pass

    @skip_for_params([(1,)])
    def time_marked(self, n): pass

    @skip_benchmark
    def time_skipped(self): pass

    @property
    def time_property(self): return 1

    @staticmethod
    def time_static(): pass


class Implements(Interface):
    def time_required(self): pass


class Shown(_Hidden):
    pass


time_other_name = helper
time_pretty = time_function
time_function.pretty_name = "a function"


def time_renamed(): pass


time_renamed.benchmark_name = "elsewhere.time_called"


class Twice:
    def time_first(self): pass


class Twice:
    def time_second(self): pass


if __name__ == "__main__":
    def time_main(): pass
""",
    "bench/sub/__init__.py": "from ..common import *\n",
    "bench/sub/deep.py": "from bench.common import track_shared as alias\nfrom ..plain import TimeSuite\n",
    "bench/sub-dashed.py": "def time_dashed(): pass\n",
    "bench/folder_without_init/lost.py": "def time_never(): pass\n",
    "bench/data.txt": "def time_text(): pass\n",
}


def discovered(folder):
    """Benchmarks that asv_runner finds, and modules it loses."""
    archive = folder.parent / "harness.pyz"
    archive.write_bytes(harness_archive())
    limits = {"limit": 60, "import_limit": 60, "budget": 60, "enough": 0}
    wanted = {"only": None, "lines": {}, "coverage": "", "compiled": {}, "names": [], "ruled_out": [], "skip": []}
    wanted |= {"results": False}
    request = {
        "command": "survey",
        "root": str(folder),
        "checkout": str(folder.parent),
        "tests": "",
        "nonce": "N0NCE",
        **limits,
        **wanted,
    }
    done = subprocess.run(
        [sys.executable, str(archive)], input=json.dumps(request), capture_output=True, text=True, check=True
    )
    answers = [json.loads(line.removeprefix("N0NCE ")) for line in done.stdout.splitlines()]
    timed = {answer["name"].partition("(")[0] for answer in answers if answer["event"] == "benchmark"}
    untimed = {name for answer in answers if answer["event"] == "untimed" for name in answer["names"]}
    return timed | untimed, {answer["name"]: answer["message"] for answer in answers if answer["event"] == "lost"}


def laid_out(tmp_path, files):
    for path, text in files.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "bench"


def test_what_is_certain_is_what_asv_discovers(tree_of, tmp_path):
    names, lost = discovered(laid_out(tmp_path, SUITE))
    reading = read_suite(tree_of(SUITE), "bench")
    assert lost == {}
    assert reading.certain <= names
    # Abstract methods decide whether asv takes a class at all.
    assert names - reading.certain == {"plain.Implements.time_given", "plain.Implements.time_required"}
    assert all(map(reading.mentions, names))
    pympler = {"common.mem_shared", "sub.mem_shared"}
    assert not pympler & (names | reading.certain)
    assert all(map(reading.mentions, pympler))
    assert reading.missing(names, lost) == ()
    assert {"time_top", "plain.helper", "plain.TimeSuite.time_inherited", "elsewhere.time_called"} <= reading.certain
    assert {"sub.deep.TimeSuite.time_replaced", "sub.track_shared", "sub-dashed.time_dashed"} <= reading.certain


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("try:\n    import nothing_of_this_name\n    def time_x(): pass\nexcept ImportError:\n    pass\n", "time_x"),
        ("import os\nif os.environ.get('NO'):\n    def time_x(): pass\n", "time_x"),
        ("from unittest import mock\n@mock.patch\ndef time_x(): pass\n", "time_x"),
        ("from unittest import TestCase\nclass A(TestCase):\n    def time_x(self): pass\n", "A.time_x"),
        ("class A:\n    def time_x(self): pass\nsetattr(A, 'time_x', None)\n", "A.time_x"),
        ("class A:\n    def time_x(self): pass\nA.time_x = None\n", "A.time_x"),
        ("class A:\n    def time_x(self): pass\ndel A.time_x\n", "A.time_x"),
        ("def make(c): return None\n@make\nclass A:\n    def time_x(self): pass\n", "A.time_x"),
        ("def time_x(): pass\nif 1:\n    time_x = None\n", "time_x"),
        ("class A:\n    for n in range(2):\n        def time_x(self): pass\n", "A.time_x"),
        ("def time_x(): pass\ntime_x.benchmark_name = 'y'.strip()\n", "time_x"),
    ],
)
def test_what_stands_under_a_condition_is_possible_and_never_missing(tree_of, text, name):
    reading = read_suite(tree_of({"bench/m.py": text}), "bench")
    assert reading.mentions(f"m.{name}")
    assert reading.certain == frozenset()
    assert reading.missing([], []) == ()


def test_a_certain_benchmark_that_is_not_discovered_is_missing(tree_of):
    reading = read_suite(tree_of(SUITE), "bench")
    names = reading.certain - {"plain.time_function"}
    assert reading.missing(names, []) == ("plain.time_function",)


def test_a_lost_module_takes_only_what_is_below_it_from_what_is_missing(tree_of):
    reading = read_suite(tree_of(SUITE), "bench")
    assert not [name for name in reading.missing([], ["bench.sub"]) if name.startswith("sub.")]
    assert "sub-dashed.time_dashed" in reading.missing([], ["bench.sub"])
    assert reading.missing([], ["bench"]) == ()


def test_a_name_that_code_makes_is_not_mentioned(tree_of):
    files = {"b/m.py": "class A: pass\nfor n in 'ab':\n    setattr(A, 'time_' + n, len)\n", "b/n.py": "x = type(3)\n"}
    reading = read_suite(tree_of(files), "b")
    assert not reading.mentions("m.A.time_a")
    assert reading.certain == frozenset()


def test_a_module_that_cannot_be_parsed_holds_nothing_certain(tree_of):
    reading = read_suite(tree_of({"b/m.py": "print 'time_x'\n", "b/n.py": "def time_y(): pass\n"}), "b")
    assert reading.by_module == {"m": frozenset(), "n": frozenset({"n.time_y"})}
    assert reading.certain == {"n.time_y"}


def test_files_laid_over_the_tree_are_read_in_its_place(tree_of):
    tree = tree_of({"b/m.py": "def time_old(): pass\n", "b/n.py": "def time_kept(): pass\n"})
    overlay = {"b/m.py": b"def time_new(): pass\n", "b/o.py": b"def time_added(): pass\n"}
    assert read_suite(tree, "b", overlay).certain == {"m.time_new", "n.time_kept", "o.time_added"}


def test_imports_in_a_circle_come_to_an_end(tree_of):
    files = {"b/m.py": "from .n import *\nfrom .n import x\n", "b/n.py": "from .m import *\nfrom .m import x\n"}
    assert read_suite(tree_of(files), "b").certain == frozenset()
