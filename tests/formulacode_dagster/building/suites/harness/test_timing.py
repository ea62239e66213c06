"""How a benchmark is timed: by its author's options, and reported only by the harness."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.suites.harness import timing
from formulacode_dagster.building.suites.questions import ProcessSetting, Timed, TimedBenchmark
from formulacode_dagster.building.suites.remote import HarnessClient
from tests.support.measurement import take


@pytest.fixture
def one(session, lay):
    """Remote and survey of a suite of one module."""

    def make(source):
        lay(Path(session.repository), {"benchmarks/bench.py": source})
        remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)
        survey = remote.survey(lines={}, limit=1, budget=20)
        return remote, survey

    return make


@pytest.mark.slow
def test_a_benchmark_that_prints_an_answer_is_not_believed(one):
    forged = json.dumps({"event": "timed", "seconds": 1e-12, "calls": 1})
    remote, survey = one(f"import os\ndef time_it():\n    os.write(1, b'{'0' * 32} {forged}\\n')\n    os._exit(0)\n")
    assert survey.benchmarks[0].outcome == "crash"
    assert take(remote, survey.benchmarks[0]).kind == "crash"


@pytest.mark.slow
def test_what_the_author_said_about_the_timing_is_honoured(one):
    source = """
class Suite:
    number = 3
    repeat = 4
    warmup_time = 0
    def setup(self):
        self.calls = 0
    def time_it(self):
        self.calls += 1
        assert self.calls <= 3
    def teardown(self):
        assert self.calls == 3 or self.first
        self.first = False
    first = True
"""
    remote, survey = one(source)
    assert survey.benchmarks[0].outcome == "ran"
    timed = take(remote, survey.benchmarks[0], seconds=1.0)
    assert isinstance(timed, Timed), timed
    assert timed.calls == 12


def test_sampled_own_time_is_independent_of_other_load():
    """asv_runner's own loop ends when the time is over by the clock, perhaps after one batch."""
    batches = iter([0.004] * 10)
    suite = SimpleNamespace(
        repeat=0, number=0, warmup_time=0.0, sample_time=0.01, min_run_count=1, _current_params=(),
        benchmark_timing=lambda timer, *_: ([timer.timeit(7)], 7),
    )  # fmt: skip
    timer = SimpleNamespace(timeit=lambda _: next(batches))
    timings, number = timing._timings(suite, timer, isolate=False, once=False, seconds=0.02)
    assert (number, timings) == (7, [0.004] * 5)


def test_a_setup_that_takes_longer_than_the_calls_is_not_repeated_for_ever(monkeypatch):
    spent = itertools.count(0, 0.05)
    monkeypatch.setattr(timing.time, "process_time", lambda: next(spent))
    suite = SimpleNamespace(
        repeat=0, number=0, warmup_time=0.0, sample_time=0.01, min_run_count=1, _current_params=(),
        benchmark_timing=lambda timer, *_: ([timer.timeit(7)], 7),
    )  # fmt: skip
    timer = SimpleNamespace(timeit=lambda _: 0.0001)
    timings, _ = timing._timings(suite, timer, isolate=False, once=False, seconds=0.02)
    assert len(timings) == timing.LEAST_BATCHES


@pytest.mark.slow
def test_batches_last_as_long_as_their_setup_up_to_asvs_limit(one):
    source = """
import time
class Suite:
    def setup(self):
        end = time.process_time() + 0.005
        while time.process_time() < end:
            pass
    def time_it(self):
        sum(range(1000))
"""
    remote, survey = one(source)
    # where a busy machine makes the first calls slow, asv_runner takes fewer a batch
    samples = (take(remote, survey.benchmarks[0], seconds=0.1) for _ in range(5))
    assert any(timed.calls * timed.value > timing.LEAST_BATCHES * 0.003 for timed in samples)


@pytest.mark.slow
def test_the_batches_of_an_arm_with_a_longer_setup_are_no_longer(one, tmp_path):
    source = f"""
import time
class Suite:
    def setup(self):
        with open({str(tmp_path / "setups")!r}, "a") as file:
            file.write("x")
        end = time.process_time() + 0.006
        while time.process_time() < end:
            pass
    def time_it(self):
        sum(range(1000))
"""

    def calls_of_a_batch(setup_seconds):
        (tmp_path / "setups").unlink()
        timed = take(remote, surveyed.model_copy(update={"setup_seconds": setup_seconds}), seconds=0.04)
        return timed.calls / len((tmp_path / "setups").read_text())

    remote, survey = one(source)
    (surveyed,) = survey.benchmarks
    assert 0.006 <= surveyed.setup_seconds < 0.1
    assert 2 * calls_of_a_batch(0.0) < calls_of_a_batch(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("setup_seconds", "number", "is_once"), [(0.03, 0, True), (0.002, 0, False), (0.03, 3, False)])
def test_a_setup_longer_than_a_batch_runs_once_unless_requested(one, tmp_path, setup_seconds, number, is_once):
    source = f"""
import time
class Suite:
    number = {number}
    def setup(self):
        with open({str(tmp_path / "setups")!r}, "a") as file:
            file.write("x")
        end = time.process_time() + {setup_seconds}
        while time.process_time() < end:
            pass
    def time_it(self):
        sum(range(1000))
"""
    remote, survey = one(source)
    (tmp_path / "setups").unlink()
    timed = take(remote, survey.benchmarks[0], seconds=0.05)
    setups = len((tmp_path / "setups").read_text())
    assert (setups == 1) is is_once
    assert is_once or setups > timing.LEAST_BATCHES
    assert timed.calls > 3 * timing.LEAST_BATCHES or number


@pytest.mark.slow
@pytest.mark.parametrize(("call", "waits"), [("time.sleep(0.001)", True), ("pass", False)])
def test_a_call_that_waits_for_something_says_so(one, call, waits):
    remote, survey = one(f"import time\ndef time_it():\n    {call}\n")
    assert take(remote, survey.benchmarks[0]).waited is waits


@pytest.mark.slow
def test_with_number_one_every_call_finds_a_fresh_setup(one):
    source = """
class Suite:
    number = 1
    def setup(self):
        self.fresh = True
    def time_it(self):
        assert self.fresh
        self.fresh = False
"""
    remote, survey = one(source)
    assert take(remote, survey.benchmarks[0]).calls > 1


@pytest.mark.slow
def test_a_package_without_importlib_metadata_finds_it_unchanged(one):
    source = "import importlib\nVERSION = importlib.metadata.version\ndef time_it():\n    assert callable(VERSION)\n"
    remote, survey = one(source)
    assert survey.benchmarks[0].outcome == "ran"
    assert isinstance(take(remote, survey.benchmarks[0]), Timed)


@pytest.mark.slow
def test_plugins_of_asv_are_asked_for_in_a_survey_and_not_for_a_sample(session, lay):
    source = "import asv_runner.benchmarks\ndef time_it():\n    assert not asv_runner.benchmarks.asv_modules, 'asked'\n"
    lay(Path(session.repository), {"benchmarks/bench.py": source})
    site = Path(session.repository)
    lay(site, {"asv_bench_other-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: asv_bench_other\nVersion: 1\n"})
    remote = HarnessClient(session, benchmark_dir="benchmarks", environment={"PYTHONPATH": str(site)})
    (benchmark,) = remote.survey(lines={}, limit=5, budget=20).benchmarks
    assert (benchmark.outcome, "asked" in benchmark.message) == ("error", True)
    assert isinstance(take(remote, benchmark), Timed)


@pytest.mark.slow
def test_only_what_is_timed_is_made(one, session):
    source = """
import os
import pathlib

class Costly:
    def __init__(self):
        if pathlib.Path(__file__).with_name("surveyed").exists():
            os._exit(3)
    def time_it(self):
        pass

def time_it():
    pass
"""
    remote, survey = one(source)
    Path(session.repository, "benchmarks/surveyed").touch()
    costly, plain = sorted(survey.benchmarks, key=lambda each: each.owner, reverse=True)
    assert isinstance(take(remote, plain), Timed)
    assert take(remote, costly).kind == "crash"


@pytest.mark.slow
def test_parameters_of_a_set_are_found_by_their_names(one):
    remote, survey = one("def time_it(word): pass\n\ntime_it.params = list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})\n")
    benchmarks = [TimedBenchmark(each, each.isolate, each.setup_seconds) for each in survey.benchmarks]
    assert len(benchmarks) == 7
    answers = [remote.time(benchmarks, seconds=0.01, setting=ProcessSetting(hash_seed=seed)) for seed in (1, 2)]
    assert all(isinstance(sample, Timed) for answer in answers for sample in answer.samples)
