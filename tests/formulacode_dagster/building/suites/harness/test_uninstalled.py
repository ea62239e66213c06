"""A suite that imports what only the repository's root has."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.remote import HarnessClient
from tests.support.measurement import take

SUITE = """
import json

from own_tests.helpers import make

class TimeMade:
    def setup(self):
        from tools.sizes import SIZE
        self.made = make(SIZE)

    def time_made(self):
        sorted(self.made)
"""
CHECKOUT = {
    "benchmarks/bench.py": SUITE,
    "own_tests/__init__.py": "",
    "own_tests/helpers.py": "def make(n):\n    return list(range(n))\n",
    "tools/sizes.py": "SIZE = 10\n",
    "json.py": "raise RuntimeError('the checkout stood in for what is installed')\n",
}


@pytest.fixture
def survey(session, lay):
    """The survey of a checkout that is not on the import path by itself, and the harness that made it."""

    def run(files):
        lay(Path(session.repository), files)
        remote = HarnessClient(session, benchmark_dir="benchmarks", environment={"PYTHONPATH": ""})
        return remote, remote.survey(lines={}, limit=5, budget=10)

    return run


@pytest.mark.slow
def test_the_root_comes_last_if_a_suite_imports_from_it(survey):
    remote, found = survey(CHECKOUT)
    assert found.uninstalled == ("own_tests", "tools")
    (benchmark,) = found.benchmarks
    assert (benchmark.name, benchmark.outcome) == ("bench.TimeMade.time_made", "ran")
    # each sample is taken in a process of its own
    assert take(remote, benchmark).value > 0


def test_the_root_stays_off_the_path_if_the_suite_does_not_need_it(survey):
    bare = "def time_it():\n    import tools.sizes\n"
    _, found = survey({**CHECKOUT, "benchmarks/bench.py": bare.replace("tools", "tools_elsewhere")})
    assert found.uninstalled == ()
    assert [benchmark.outcome for benchmark in found.benchmarks] == ["error"]
