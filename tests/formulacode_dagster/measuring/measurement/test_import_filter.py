"""Benchmarks of another suite that need not run, since those of an earlier one represent them."""

from __future__ import annotations

import pytest

from formulacode_dagster.building.suites.questions import SurveyedBenchmark
from formulacode_dagster.measuring.measurement.import_filter import same_modules, still_ruled_out
from formulacode_dagster.measuring.measurement.relevance import NO_TIME, BenchmarkCandidate
from formulacode_dagster.models.measurement import Arm

FILES = {
    "asv/__init__.py": b"",
    "asv/graphs.py": b"import pkg\n\n\ndef time_graph(): ...\n",
    "asv/trees.py": b"from .common import tree\n\n\ndef time_tree(): ...\n",
    "asv/common.py": b"from .inputs import INPUTS\n",
    "asv/inputs.py": b"INPUTS = 1\n",
    "asv/deep/io.py": b"import pkg\n",
}
ALL = {"__init__", "graphs", "trees", "common", "inputs", "deep.io"}


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({}, ALL, id="nothing differs"),
        pytest.param({"asv/graphs.py": b"1"}, ALL - {"graphs"}, id="a module"),
        pytest.param({"asv/new.py": b"1"}, ALL, id="one more module"),
        pytest.param({"asv/common.py": b"1"}, ALL - {"common", "trees"}, id="what another imports"),
        pytest.param({"asv/inputs.py": b"1"}, ALL - {"inputs", "common", "trees"}, id="what that imports in turn"),
        pytest.param({"asv/inputs.csv": b"1"}, ALL - {"common", "trees"}, id="a file that a module speaks of"),
        pytest.param({"asv/__init__.py": b"1"}, set(), id="the package"),
    ],
)
def test_a_module_is_the_same_where_nothing_differs_that_it_speaks_of(changed, same):
    assert same_modules(FILES, {**FILES, **changed}, benchmark_dir="asv/") == same


def test_a_module_that_speaks_of_one_that_is_gone_is_another():
    after = {path: content for path, content in FILES.items() if path != "asv/common.py"}
    assert same_modules(FILES, after, benchmark_dir="asv") == ALL - {"common", "trees"}


def candidate(module, executes_change, unknown=""):
    surveyed = SurveyedBenchmark(
        name=f"{module}.time_it",
        module=module,
        owner="",
        attribute="time_it",
        index=0,
        timeout=1.0,
        cache_folder="",
        outcome="ran",
    )
    return BenchmarkCandidate({Arm.BASE: surveyed, Arm.ORACLE: surveyed}, executes_change, unknown)


def test_only_what_was_seen_not_to_execute_the_change_is_ruled_out():
    candidates = [
        candidate("graphs", executes_change=False),
        candidate("deep.io", executes_change=None, unknown=NO_TIME),
        candidate("inputs", executes_change=True),
        candidate("trees", executes_change=False),
    ]
    after = {**FILES, "asv/common.py": b"1"}
    assert still_ruled_out(candidates, FILES, after, benchmark_dir="asv") == {"graphs.time_it"}
