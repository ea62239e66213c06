from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sampling import run_whole

# one worker runs the bench once for all
pytestmark = pytest.mark.xdist_group("bench_intake")

ROOT = Path(__file__).parents[2]
SECONDS = 250


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def figures(home):
    command = [sys.executable, "bench/intake.py", "--small", "--rate-seconds", "3", "--patches", "20"]
    environment = os.environ | {"FC_HOME": str(home)}
    done = subprocess.run(
        [*command, "--broken", "0.03"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    *shown, last = done.stdout.splitlines()
    assert shown[0].split() == ["ours", "baseline"]
    return json.loads(last) | {"exit": done.returncode}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import intake_report
    import intake_world

    return intake_world, intake_report


@run_whole("intake")
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 30)
def test_a_small_month_is_taken_in_whole_and_the_baseline_s_is_not(figures):
    ours, baseline = figures["ours"], figures["baseline"]
    assert (ours["found"], ours["strangers"], ours["wrong"], ours["short"]) == (ours["expected"], 0, 0, 0)
    assert list(ours["failures"]) == ["lab5/project005"]
    assert (ours["rest"], ours["limit_hits"], figures["patches"]["requests"]) == (0, 0, 0)
    assert (figures["rate"]["differing"], figures["rate"]["limit_hits"]) == (0, 0)
    assert 0 < baseline["found"] < baseline["expected"]
    assert baseline["short"] > 0
    assert baseline["rest"] > baseline["found"]
    assert baseline["broken"] > 0
    # how fast a busy machine is says nothing about the bench
    missed = [words for words in figures["missed"] if "of the rate allowed" not in words]
    assert (missed, figures["exit"]) == ([], int(bool(figures["missed"])))


@run_whole("intake")
@pytest.mark.slow
def test_the_truth_is_the_plan_s_and_the_world_the_same_each_time(figures, home, bench, tmp_path):
    world_module, _ = bench
    told = {field.name: figures["world"][field.name] for field in dataclasses.fields(world_module.WorldSize)}
    size = world_module.WorldSize(**told)
    known = world_module.open_world(home / "bench", size)
    again = world_module.open_world(tmp_path, size)
    assert known.repositories == again.repositories
    assert known.expected == size.merged
    assert max(len(repository.pulls) for repository in known.repositories) == size.largest
    facts = [pull for repository in known.repositories for pull in repository.pulls.values()]
    assert max(pull["changed_files"] for pull in facts) == size.files
    assert max(len(pull["labels"]) for pull in facts) > 30
    assert max(len(pull["issues"]) for pull in facts) > 10
    assert {repository.name for repository in known.repositories if repository.vanished} == {"lab5/project005"}
    assert [repository.name_now for repository in known.repositories if repository.name != repository.name_now] == [
        "lab9/renamed"
    ]
    served = json.loads((known.folder / "facts.json").read_text())
    assert sum(repository["is_archived"] for repository in served.values()) == 2


def outcome(report_module, **changed):
    good = report_module.Outcome(
        expected=200, found=200, strangers=0, wrong=0, short=0, failures={"a/b": "vanished"}, points=4, rest=1,
        requests=6, limit_hits=0, broken=1, seconds=1.0, waited=0.0, real_seconds=1.0, peak_mb=50.0,
    )  # fmt: skip
    return dataclasses.replace(good, **changed)


@pytest.mark.parametrize(
    ("changed", "rate", "missed"),
    [
        ({}, {}, []),
        ({"found": 199}, {}, ["completeness 100.000 %"]),
        ({"strangers": 1}, {}, ["completeness 100.000 %"]),
        ({"wrong": 1}, {}, ["everything told of them true"]),
        ({"short": 1}, {}, ["no repository short, the vanished one failed by name"]),
        ({"failures": {}}, {}, ["no repository short, the vanished one failed by name"]),
        ({"points": 11}, {}, ["at most 5 points per 100"]),
        ({"rest": 3}, {}, ["at most 1 REST call per 100"]),
        ({"limit_hits": 1}, {}, ["no limit met"]),
        ({}, {"limit_hits": 1}, ["no limit met"]),
        ({}, {"steps": [[float(second), 18 * second] for second in range(61)]}, ["at least 60% of the rate allowed"]),
        ({}, {"differing": 1}, ["the same rows each time"]),
    ],
)
def test_every_target_can_be_missed(bench, changed, rate, missed):
    world_module, report_module = bench
    steady = {"steps": [[float(second), 25 * second] for second in range(61)], "limit_hits": 0, "differing": 0}
    report = report_module.Report(
        size=world_module.WorldSize(),
        ours=outcome(report_module, **changed),
        baseline=outcome(report_module),
        rate=steady | {"pull_requests": 1, "faults": 0, "runs": 1} | rate,
        patches={"requests": 0, "patches": 1, "repositories": 1, "seconds": 1.0},
    )
    assert report.missed() == missed
