"""A suite with a benchmark of every kind, surveyed once and timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.questions import NotTimed, Timed
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from tests.support.measurement import take

SUITE = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def slow(n):\n    return sum(i for i in range(n))\n\n\ndef prepare():\n    return 1\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
import os, sys, time
from pkg.core import prepare, slow

def time_slow():
    print("noise on stdout")
    print("noise on stderr", file=sys.stderr)
    slow(1000)

class TimeParams:
    params = [[10, 1000], ["a", "b"]]
    def setup(self, n, kind):
        prepare()
        if (n, kind) == (10, "b"):
            raise NotImplementedError
        self.data = list(range(n))
    def time_it(self, n, kind):
        slow(n)
    def time_uses_up(self, n, kind):
        slow(self.data.pop() % 2)
        self.data.clear()

class Cached:
    def setup_cache(self):
        return {"k": 5}
    def time_cached(self, cache):
        assert cache["k"] == 5

class Cannot:
    def __init__(self):
        raise RuntimeError("no such device")
    def time_it(self):
        pass

def timeraw_import():
    return "import json"

def track_something():
    return 3

def mem_something():
    return [1]

def time_raises():
    raise ValueError("boom")

def time_hangs():
    while True:
        time.sleep(1)
time_hangs.timeout = 0.3

def time_exits():
    os._exit(3)
""",
    "benchmarks/bench_offline.py": "import module_that_is_not_there\n",
    "benchmarks/bench_exits.py": "import os\nos._exit(1)\n",
    "benchmarks/deep/__init__.py": "",
    "benchmarks/deep/bench_deep.py": "def time_deep():\n    pass\n",
}


@pytest.fixture
def remote(session, lay):
    lay(Path(session.repository), SUITE)
    return HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)


@pytest.fixture
def survey(remote):
    return remote.survey(lines={"pkg/core.py": range(1, 99)}, limit=10, budget=60)


@pytest.fixture
def found(survey):
    return {benchmark.name: benchmark for benchmark in survey.benchmarks}


@pytest.mark.slow
def test_one_survey_tells_everything_about_a_suite(survey, found):
    assert set(found) == {
        "bench.time_slow",
        *(
            f"bench.TimeParams.{name}({n}, '{kind}')"
            for name in ("time_it", "time_uses_up")
            for n in (10, 1000)
            for kind in "ab"
        ),
        "bench.Cached.time_cached",
        "bench.timeraw_import",
        "bench.track_something",
        "bench.time_raises",
        "bench.time_hangs",
        "bench.time_exits",
        "deep.bench_deep.time_deep",
    }
    outcomes = {name: benchmark.outcome for name, benchmark in found.items()}
    assert outcomes["bench.time_slow"] == outcomes["deep.bench_deep.time_deep"] == "ran"
    assert outcomes["bench.Cached.time_cached"] == outcomes["bench.timeraw_import"] == "ran"
    assert outcomes["bench.TimeParams.time_it(10, 'b')"] == "skipped"
    assert outcomes["bench.time_raises"] == "error"
    assert "boom" in found["bench.time_raises"].message
    assert outcomes["bench.time_hangs"] == "timeout"
    assert outcomes["bench.time_exits"] == "crash"
    # Modules that cannot be imported, and a class that cannot be made, are lost by name and take nothing with them.
    assert set(survey.lost) == {"benchmarks.bench_offline", "benchmarks.bench_exits", "benchmarks.bench.Cannot"}
    assert "module_that_is_not_there" in survey.lost["benchmarks.bench_offline"]
    # What the timed call runs is known, what only the setup runs is not taken for it.
    assert found["bench.TimeParams.time_it(10, 'a')"].lines == {"pkg/core.py": (2,)}
    assert not found["bench.timeraw_import"].traceable
    # Short calls behind a setup are batched, unless a call changes what the next one finds.
    assert not found["bench.TimeParams.time_it(1000, 'a')"].isolate
    assert found["bench.TimeParams.time_uses_up(1000, 'a')"].isolate


@pytest.mark.slow
def test_benchmarks_are_timed_in_processes_of_their_own(remote, found):
    short = take(remote, found["bench.time_slow"])
    assert isinstance(short, Timed)
    assert short.value < 0.01
    assert short.calls > 10
    assert isinstance(take(remote, found["bench.TimeParams.time_uses_up(1000, 'a')"]), Timed)
    assert isinstance(take(remote, found["bench.Cached.time_cached"]), Timed)
    assert isinstance(take(remote, found["bench.timeraw_import"]), Timed)
    skipped = take(remote, found["bench.TimeParams.time_it(10, 'b')"])
    assert isinstance(skipped, NotTimed)
    assert skipped.kind == "skipped"
    assert take(remote, found["bench.time_raises"]).kind == "error"
    assert take(remote, found["bench.time_hangs"]).kind == "timeout"
    assert take(remote, found["bench.time_exits"]).kind == "crash"


@pytest.mark.slow
def test_a_benchmark_with_other_parameters_than_surveyed_is_missing(remote, found):
    other = found["bench.TimeParams.time_it(10, 'a')"].model_copy(update={"name": "bench.TimeParams.time_it(11, 'a')"})
    assert take(remote, other).kind == "missing"


@pytest.mark.slow
def test_only_named_benchmarks_are_run_again_and_without_time_none_is(remote):
    only = remote.survey(lines={}, limit=10, budget=60, selection=BenchmarkSelection(["bench.time_slow"]))
    assert [benchmark.name for benchmark in only.benchmarks] == ["bench.time_slow"]
    two = remote.survey(lines={}, limit=10, budget=60, selection=BenchmarkSelection(enough=2))
    assert sum(found.outcome == "ran" for found in two.benchmarks) == 2
    assert {found.outcome for found in two.benchmarks} <= {"ran", "untraced", "error", "timeout", "crash", "skipped"}
    none = remote.survey(lines={}, limit=10, budget=0.0)
    assert {benchmark.outcome for benchmark in none.benchmarks} == {"untraced"}


@pytest.mark.slow
def test_shares_of_a_survey_have_each_benchmark_once_and_caches_together(remote, found):
    shares = [
        {
            benchmark.name
            for benchmark in remote.survey(
                lines={}, limit=10, budget=60, selection=BenchmarkSelection(share=(number, 2))
            ).benchmarks
        }
        for number in range(2)
    ]
    assert all(shares)
    assert sorted([*shares[0], *shares[1]]) == sorted(found)
    assert "bench.Cached.time_cached" in shares[0]
