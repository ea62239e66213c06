"""Commits benchmarked one after the other, in folders of this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.building.suites.questions import Description, Timed
from formulacode_dagster.measuring.commit_benchmarks.benchmark import FAILURES, CommitBenchmarks, CommitState
from formulacode_dagster.measuring.commit_benchmarks.plain_asv import PlainAsv
from formulacode_dagster.measuring.commit_benchmarks.sampling import RoundsPlan, TakenRound, take_round
from formulacode_dagster.models.errors import ItemFailure, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind
from tests.support import commit_benchmarks
from tests.support.commit_benchmarks import LIMITS, run_benchmarks
from tests.support.git_world import BareRepository
from tests.support.images import PURE

SLOW = "def total(n):\n    return sum(range(n))\n"
FAST = "def total(n):\n    return n * (n - 1) // 2\n"
SUITE = """
import tinypure


class TimeTotal:
    params = [20_000, "none"]
    param_names = ["n"]

    def setup(self, n):
        if n == "none":
            raise NotImplementedError

    def time_total(self, n):
        tinypure.total(n)


def time_new():
    tinypure.new()
"""


@pytest.fixture(scope="module")
def shas(world: Path) -> dict[str, str]:
    repository = BareRepository(world / "origin/acme/tinypure.git")
    files = {**PURE, "benchmarks/bench_total.py": SUITE, "tinypure/__init__.py": SLOW}
    marks = {
        "slow": repository.add("Slow", "2026-02-03T04:05:06Z", files=files),
        "broken": repository.add(
            "Broken",
            "2026-02-04T04:05:06Z",
            files={"pyproject.toml": "[project]\nname = 'tinypure'\n", "tinypure/__init__.py": "nonsense(\n"},
        ),
        "fast": repository.add(
            "Fast",
            "2026-02-05T04:05:06Z",
            files={"pyproject.toml": PURE["pyproject.toml"], "tinypure/__init__.py": FAST},
        ),
    }
    repository.ref("refs/tags/first", marks["slow"])
    by_mark = repository.write()
    return {name: by_mark[mark] for name, mark in marks.items()}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commits")


def results_of(folder: Path, sha: str) -> dict[str, object]:
    (path,) = (folder / "results/here").glob(f"{sha[:8]}-*.json")
    return json.loads(path.read_bytes())


def failures_of(folder: Path) -> dict[str, str]:
    """The reason and the log by commit: what a failed assertion shows."""
    lines = map(json.loads, (folder / FAILURES).read_text().splitlines())
    return {line["commit"]: f"{line['reason']}: {line['detail']}\n{line['log']}" for line in lines}


@pytest.mark.slow
@pytest.mark.variant("who times commits", most=1)
@pytest.mark.timeout(900)
def test_a_killed_run_is_finished_and_a_failed_commit_stops_no_other(world, shas):
    killed = subprocess.run([sys.executable, "-m", commit_benchmarks.__name__, str(world)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    folder = world / "results-of-ours"
    failed = failures_of(folder)
    assert set(failed) == {shas["broken"]}, failed
    assert {results_of(folder, shas[name])["formulacode"]["rounds"] for name in ("slow", "fast")} == {1}

    standing = {commit.sha: commit for commit in run_benchmarks(world)}
    told = {name: standing[shas[name]].detail for name in shas}
    assert [standing[shas[name]].state for name in shas] == [CommitState.DONE, CommitState.FAILED, CommitState.DONE], (
        told
    )
    assert standing[shas["broken"]].reason
    assert not standing[shas["broken"]].worked
    assert failures_of(folder) == failed
    assert len((folder / FAILURES).read_text().splitlines()) == 1

    slow, fast = (
        results_of(folder, shas[name])["results"]["bench_total.TimeTotal.time_total"] for name in ("slow", "fast")
    )
    told = json.loads((folder / "results/benchmarks.json").read_bytes())["bench_total.TimeTotal.time_total"]
    assert told["params"] == slow[1] == [["20000", "'none'"]]
    assert told["param_names"] == ["n"]
    assert told["version"] == slow[2] == fast[2]
    # a round that was done is not done again: two rounds, a process in each; what is skipped is NaN
    assert [len(samples or ()) for samples in slow[11]] == [2, 0], slow
    assert slow[0][1] != slow[0][1]
    # a loop over 20,000 numbers against one multiplication
    assert slow[0][0] > 10 * fast[0][0], (slow, fast)
    assert results_of(folder, shas["slow"])["results"]["bench_total.time_new"][0] == [None]

    assert not any(commit.worked for commit in run_benchmarks(world))


@pytest.mark.slow
@pytest.mark.variant("who times commits", most=1)
@pytest.mark.timeout(900)
def test_plain_asv_benchmarks_in_the_same_images(world, shas):
    import uv

    asv = PlainAsv(["--quick", "--interleave-rounds", "-a", "rounds=2"], 600, uv.find_uv_bin(), "run")
    standing = {commit.sha: commit for commit in run_benchmarks(world, asv=asv)}
    assert [standing[shas[name]].state for name in shas] == [CommitState.DONE, CommitState.FAILED, CommitState.DONE]
    result = results_of(world / "asv", shas["slow"])
    row = dict(zip(result["result_columns"], result["results"]["bench_total.TimeTotal.time_total"], strict=False))
    assert row["stats_repeat"][0] == len(row["samples"][0]) == 2
    assert result["env_name"].startswith("formulacode-py")


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Benchmarks of commits of which *taken* is sampled, by a plan with another pattern each time."""
    image = SimpleNamespace(spec=SimpleNamespace(python="3.11", benchmark_dir="benchmarks", lock_sha256=""), tag="tag")
    images = SimpleNamespace(
        image=lambda _sha, _note: image,
        mirror=SimpleNamespace(commit=lambda _sha: SimpleNamespace(committed=1)),
        engine=None,
        run_id="run",
    )
    suites = {"": BASE_SUITE, "other": SuiteFiles("other", {"benchmarks/bench.py": b""}, commit="other")}
    monkeypatch.setattr(CommitBenchmarks, "_suite", lambda self, _sha: suites[self.suite_sha])
    taken = []

    def take(_engine, _image, _suite, plan, **_options):
        taken.append(plan.pattern)
        if plan.pattern == "none":
            raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "none of 0 benchmarks runs")
        name = plan.pattern or "bench.time_c"
        described = Description(
            name=name, metric="time", unit="seconds", parameters=(), parameter_names=(), code="", version="1", timeout=0
        )
        samples = {name: [Timed(value=1.0, calls=1, waited=False)]}
        return TakenRound((described,), samples, {}, 1, 0.0, 0.0, "cpu", 1.0)

    monkeypatch.setattr("formulacode_dagster.measuring.commit_benchmarks.benchmark.take_round", take)

    def run(pattern="", suite_sha="", asv=None):
        plan = RoundsPlan(rounds=2, pattern=pattern)
        results = tmp_path / "results"
        (commit,) = CommitBenchmarks(
            images, tmp_path, results, {"machine": "here"}, None, plan, suite_sha=suite_sha, asv=asv
        ).run(["a" * 40])
        return commit

    return SimpleNamespace(run=run, taken=taken, folder=tmp_path)


def test_other_benchmarks_and_suites_have_rounds_of_their_own(work):
    for pattern in ("bench.time_a", "bench.time_b", "bench.time_a"):
        commit = work.run(pattern)
    assert work.taken == ["bench.time_a"] * 2 + ["bench.time_b"] * 2
    assert (commit.rounds, commit.benchmarks, commit.worked) == (4, 2, False)
    assert work.run("bench.time_a", "other").rounds == 6
    assert not work.run("bench.time_a", "other").worked


def test_benchmarks_that_do_not_run_are_no_failure_of_others(work):
    assert [work.run(pattern).state for pattern in ("none", "none", "bench.time_a")] == ["failed", "failed", "done"]
    assert work.taken == ["none", "bench.time_a", "bench.time_a"]


def test_results_of_other_arguments_of_asv_stay(work, monkeypatch):
    def run(asv, *_):
        name = asv.arguments[-1]
        return {"results": {name: [[1.0]]}, "commit_hash": "a" * 40}, {name: {}, "version": 2}

    monkeypatch.setattr(PlainAsv, "run", run)
    for name in ("time_a", "time_b", "time_a"):
        commit = work.run(asv=PlainAsv(["--bench", name], 600, "uv", "run"))
    assert (commit.rounds, commit.benchmarks, commit.worked) == (2, 2, False)
    assert set(json.loads((work.folder / "results/benchmarks.json").read_text())) == {"time_a", "time_b", "version"}


def test_results_of_earlier_versions_count_for_what_is_asked_first(work):
    work.run()
    (path,) = (work.folder / "results/here").glob("aaaaaaaa-*.json")
    result = json.loads(path.read_text())
    del result["formulacode"]["rounds_of"]
    path.write_text(json.dumps(result))
    assert not work.run("bench.time_a").worked


def test_only_named_benchmarks_are_run_for_a_survey(monkeypatch):
    asked = []

    class Remote:
        def __init__(self, *_arguments, **_options):
            pass

        def survey(self, *, selection, **_):
            asked.append((selection.enough, selection.only))
            names = selection.only or ["bench.time_a(1)", "bench.time_b(1)"]
            found = [SimpleNamespace(name=name, outcome="error", message="") for name in names]
            return SimpleNamespace(benchmarks=found, lost={})

        def describe(self, **_):
            return ()

    monkeypatch.setattr("formulacode_dagster.measuring.commit_benchmarks.sampling.HarnessClient", Remote)
    image = SimpleNamespace(spec=SimpleNamespace(benchmark_dir="benchmarks", run_environment={}))
    engine = SimpleNamespace(session=lambda *_, **__: nullcontext())
    for pattern, surveys in {"time_b": [(0, None), (None, ["bench.time_b(1)"])], "": [(None, None)]}.items():
        asked.clear()
        plan = RoundsPlan(pattern=pattern)
        with pytest.raises(ItemFailure, match="benchmarks runs"):
            take_round(engine, image, BASE_SUITE, plan, limits=LIMITS, cores=None, generator=None, run_id="run")
        assert asked == surveys


def test_a_commit_lost_to_a_suspected_outage_is_reported_and_retried(tmp_path, monkeypatch):
    ends = {
        "lost": SuspectedOutage("package index", FailureKind.INCOMPLETE, "no answer"),
        "bad": ItemFailure(FailureKind.LOCK, "no solution"),
    }

    def image(sha, _note):
        raise ends[sha]

    monkeypatch.setattr(CommitBenchmarks, "_suite", lambda *_: BASE_SUITE)
    work = CommitBenchmarks(
        SimpleNamespace(image=image), tmp_path, tmp_path / "results", {"machine": "here"}, None, RoundsPlan(rounds=1)
    )
    states = {commit.sha: (commit.state, commit.reason, commit.worked) for commit in work.run(["lost", "bad"])}
    assert states == {"lost": ("failed", "incomplete", True), "bad": ("failed", "lock", True)}
    assert set(failures_of(tmp_path)) == {"bad"}
    assert {commit.sha: commit.worked for commit in work.run(["lost", "bad"])} == {"lost": True, "bad": False}
