"""Environment of a process in which benchmarks are timed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.questions import NotTimed, ProcessSetting, TimedBenchmark
from formulacode_dagster.building.suites.remote import MAX_LOST_MODULES, HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from tests.support.measurement import FolderSession

NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "PYTHONHASHSEED")
BENCH = f"""
import json, os

def time_it():
    seen = [os.environ.get(name) for name in {(*NAMES, "OF_THE_SUITE")}]
    raise RuntimeError(json.dumps([*seen, len(os.environ["FC_PADDING"])]))
"""


def told(session: FolderSession, environment: Mapping[str, str], setting: ProcessSetting) -> list[object]:
    """Variables that a benchmark in a process with this *setting* sees."""
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30, environment=environment)
    (surveyed,) = remote.survey(lines={}, limit=1, budget=20).benchmarks
    asked = TimedBenchmark(surveyed, isolate=False, setup_seconds=0)
    (sample,) = remote.time([asked], seconds=0.01, setting=setting).samples
    assert isinstance(sample, NotTimed)
    seen: list[object] = json.loads(sample.message.rpartition("RuntimeError: ")[2])
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("padding", [0, 2048])
def test_threads_hash_seed_and_padding_reach_the_process_that_times(session, lay, padding: int) -> None:
    lay(Path(session.repository), {"benchmarks/bench.py": BENCH})
    suites = {"OMP_NUM_THREADS": "8", "OF_THE_SUITE": "yes"}
    assert told(session, suites, ProcessSetting(hash_seed=7, padding=padding)) == [
        *("1", "1", "1", "1", "7"), "yes", padding,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_survey_has_the_hash_seed_that_it_is_given(session, lay) -> None:
    returning = "import os\n\ndef time_it():\n    return os.environ['PYTHONHASHSEED']\n"
    lay(Path(session.repository), {"benchmarks/bench.py": returning})
    remote = HarnessClient(session, benchmark_dir="benchmarks", start_seconds=30)
    first, again, other = (
        remote.survey(lines={}, limit=1, budget=20, results=True, hash_seed=seed).benchmarks[0].returned
        for seed in (7, 7, None)
    )
    assert first == again != other


def test_an_answer_that_is_nested_too_deeply_is_none(session, monkeypatch) -> None:
    def run(*_: object, stdin: bytes, **__: object) -> Completed:
        nonce = json.loads(stdin)["nonce"]
        deep, end = "[" * 100_000, json.dumps({"event": "end"})
        return Completed(0, f"{nonce} {deep}\n{nonce} {end}\n".encode(), b"", 0.0)

    monkeypatch.setattr(session, "run", run)
    _, answers = HarnessClient(session, benchmark_dir="benchmarks").ask({"command": "idlest"}, timeout=9)
    assert answers == [{"event": "end"}]


@pytest.mark.parametrize("names", [["x"] * 100, [str(number) for number in range(100)]])
def test_a_survey_in_which_every_import_ends_the_process_comes_to_an_end(
    session, monkeypatch, names: list[str]
) -> None:
    left = list(names)

    def run(*_: object, stdin: bytes, **__: object) -> Completed:
        answer = json.dumps({"event": "importing", "name": left.pop()})
        return Completed(0, f"{json.loads(stdin)['nonce']} {answer}\n".encode(), b"", 0.0)

    monkeypatch.setattr(session, "run", run)
    with pytest.raises(ItemFailure):
        HarnessClient(session, benchmark_dir="benchmarks").survey(lines={}, limit=1, budget=1)
    assert len(names) - len(left) == min(len(set(names)), MAX_LOST_MODULES) + 1
