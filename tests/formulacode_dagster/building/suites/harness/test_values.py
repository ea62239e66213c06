"""Benchmarks that measure no time: one value a process, by asv_runner's own rules."""

from pathlib import Path

import pytest

from formulacode_dagster.building.suites.harness import suite, timing
from formulacode_dagster.building.suites.questions import NotTimed, Timed
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.measurement.sampling import BLAMELESS
from formulacode_dagster.models.measurement import Metric, Quantity
from tests.support.measurement import take

MEGABYTE = 1_000_000
SUITE = f"""
import os

class Suite:
    params = [1, 60]
    def setup_cache(self):
        return {MEGABYTE}
    def peakmem_much(self, cache, size):
        bytes(bytearray(b"x") * (size * cache))
    def mem_list(self, cache, size):
        return [None] * size
    def track_size(self, cache, size):
        return size / 2
    track_size.unit = "MB/s"
    track_size.type = "time"

def track_nothing():
    return 0
def track_no_number():
    return "many"
def track_nan():
    return float("nan")
"""
PYMPLER = """
import sys
def asizeof(objects):
    return sum(sys.getsizeof(each) for each in {id(each): each for each in objects}.values())
"""


@pytest.fixture
def remote(session, lay, tmp_path):
    lay(Path(session.repository), {"benchmarks/bench.py": SUITE})
    lay(tmp_path, {"library/pympler/__init__.py": "", "library/pympler/asizeof.py": PYMPLER})
    return HarnessClient(session, benchmark_dir="benchmarks", environment={"PYTHONPATH": str(tmp_path / "library")})


@pytest.fixture
def surveyed(remote):
    survey = remote.survey(lines={}, limit=20, budget=60, results=True)
    assert not survey.lost
    return {benchmark.name: benchmark for benchmark in survey.benchmarks}


@pytest.mark.slow
def test_memory_and_tracked_values_follow_their_own_rules(remote, surveyed):
    quantities = {name.partition("(")[0]: benchmark.quantity for name, benchmark in surveyed.items()}
    assert quantities["bench.Suite.peakmem_much"] == Quantity(metric=Metric.PEAK_MEMORY, unit="bytes")
    assert quantities["bench.Suite.mem_list"] == Quantity(metric=Metric.MEMORY, unit="bytes")
    assert quantities["bench.Suite.track_size"] == Quantity(metric=Metric.TRACKED, unit="MB/s")
    assert {benchmark.outcome for benchmark in surveyed.values()} == {"ran"}
    assert surveyed["bench.track_nothing"].returned is None, "a patch may change what is tracked"
    assert surveyed["bench.Suite.mem_list(60)"].returned is not None

    little, much = (take(remote, surveyed[f"bench.Suite.peakmem_much({size})"]) for size in (1, 60))
    assert isinstance(little, Timed)
    assert 110 * MEGABYTE < much.value - little.value < 135 * MEGABYTE, "two copies of 60 MB more, in bytes"
    assert (much.calls, much.waited) == (1, False)
    sizes = [take(remote, surveyed[f"bench.Suite.mem_list({size})"]).value for size in (1, 60)]
    assert sizes[1] - sizes[0] == 59 * 8
    tracked = take(remote, surveyed["bench.Suite.track_size(60)"])
    assert (tracked.value, tracked.calls) == (30, 1)
    assert tracked.waited, "it may have timed something by itself, beside which nothing is to run"

    for name in ("bench.track_nothing", "bench.track_nan"):
        answer = take(remote, surveyed[name])
        assert isinstance(answer, NotTimed)
        assert answer.kind in BLAMELESS
    assert take(remote, surveyed["bench.track_no_number"]).kind == "error"


class TrackBenchmark:
    """The used part of asv_runner; the type of a tracked value is set by its author."""

    type, _current_params = "time", (3,)

    def __init__(self, value):
        self.value = value

    def run(self, parameter):
        assert parameter == 3
        return self.value


class PeakMemBenchmark(TrackBenchmark):
    type = "peakmemory"


def test_a_benchmarks_metric_follows_its_kind_not_its_declared_type():
    assert [suite.metric_of(kind(1)) for kind in (TrackBenchmark, PeakMemBenchmark)] == ["track", "peakmemory"]


@pytest.mark.parametrize(("kind", "waited"), [(TrackBenchmark, True), (PeakMemBenchmark, False)])
def test_a_process_gives_one_value(kind, waited):
    assert timing._valued(kind(12)) == {"outcome": "timed", "waited": waited, "value": 12.0, "calls": 1}


@pytest.mark.parametrize("value", [0, -1.5, float("nan"), float("inf")])
def test_what_has_no_ratio_says_so(value):
    assert timing._valued(TrackBenchmark(value))["outcome"] == "no_ratio"


@pytest.mark.parametrize("value", [None, {}, "many"])
def test_what_is_no_number_fails(value):
    with pytest.raises((TypeError, ValueError)):
        timing._valued(TrackBenchmark(value))
