"""Instructions of calls, as the harness counts them under callgrind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.callgrind import Callgrind
from formulacode_dagster.building.suites.remote import HarnessClient

BENCH = """
import os
import zlib

class Suite:
    params = [2_000, 20_000]
    warm = []

    def setup(self, n):
        self.data = bytes(range(250)) * 40

    def time_sum(self, n):
        if not self.warm:
            self.warm.append(sum(range(400_000)))
        sum(range(n))

    def time_compress(self, n):
        zlib.compress(self.data)

def time_broken():
    raise SystemExit("never")

def time_killed():
    os.kill(os.getpid(), 9)

def timeraw_it():
    return "pass"
"""


@pytest.fixture
def count(session, lay):
    """The counts of a suite's benchmarks, in so many seconds."""
    lay(Path(session.repository), {"benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    benchmarks = remote.survey(lines={}, limit=5, budget=20).benchmarks
    # a busy machine, and some fifty times slower
    benchmarks = [each.model_copy(update={"timeout": 60.0}) for each in benchmarks]

    def run(budget: float = 60.0) -> dict[str, int | str]:
        tool = Callgrind.find()
        assert tool, "valgrind is not installed: .ci/install-valgrind"
        return remote.count(benchmarks, tool, budget=budget)

    return run


@pytest.mark.slow
def test_a_call_takes_the_same_instructions_in_every_repetition(count) -> None:
    first, again = count(), count()
    counted = {name: told for name, told in first.items() if isinstance(told, int)}
    assert counted == pytest.approx({name: again[name] for name in counted}, rel=1e-4)
    small, large = first["bench.Suite.time_sum(2000)"], first["bench.Suite.time_sum(20000)"]
    # the first call is not counted, and what a call takes besides its loop is little
    assert 9 < large / small < 11
    # compiled code counts, too
    assert first["bench.Suite.time_compress(2000)"] > 100_000
    assert (first["bench.time_broken"], first["bench.time_killed"]) == ("error", "killed")
    assert first["bench.timeraw_it"] == "no time"


@pytest.mark.slow
def test_what_there_is_no_time_for_is_not_counted(count) -> None:
    assert set(count(budget=0.0).values()) == {"no time"}


@pytest.mark.slow
def test_a_tool_that_does_not_run_is_the_reason(session, lay, tmp_path) -> None:
    lay(Path(session.repository), {"benchmarks/bench.py": BENCH})
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    benchmarks = remote.survey(lines={}, limit=5, budget=20).benchmarks
    broken = tmp_path / "callgrind"
    broken.write_text("#!/bin/sh\necho illegal instruction >&2\nexit 3\n")
    (reason,) = set(remote.count(benchmarks, Callgrind(broken, broken), budget=5).values())
    assert "illegal instruction" in str(reason)


@pytest.mark.slow
def test_a_start_that_takes_longer_than_the_count_may_is_ended(session, lay) -> None:
    slow = "import os, time\nif 'VALGRIND_LIB' in os.environ:\n    time.sleep(60)\n\ndef time_it():\n    pass\n"
    lay(Path(session.repository), {"benchmarks/bench.py": slow})
    remote, tool = HarnessClient(session, benchmark_dir="benchmarks"), Callgrind.find()
    assert tool
    benchmarks = remote.survey(lines={}, limit=5, budget=20).benchmarks
    started = time.monotonic()
    assert remote.count(benchmarks, tool, budget=3.0) == {"bench.time_it": "no time"}
    assert time.monotonic() - started < 20
