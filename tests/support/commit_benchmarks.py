"""Commits of a tiny repository benchmarked by the process engine; run as a program it is killed in its second turn."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.measuring.commit_benchmarks.asv_results import machine_facts
from formulacode_dagster.measuring.commit_benchmarks.benchmark import BenchmarkedCommit, CommitBenchmarks
from formulacode_dagster.measuring.commit_benchmarks.commits import find_commits
from formulacode_dagster.measuring.commit_benchmarks.images import CommitImages
from formulacode_dagster.measuring.commit_benchmarks.plain_asv import PlainAsv
from formulacode_dagster.measuring.commit_benchmarks.sampling import RoundsPlan
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.sources.git.mirror import MirrorCache

REPOSITORY = "acme/tinypure"
# no limit that a busy machine could reach: what counts as one long call is then timed once, cold
LIMITS = ResourceLimits(cpus=2, memory_mb=2048, processes=256, build_seconds=1200, benchmark_seconds=300)
PLAN = RoundsPlan(rounds=2, processes=1, seconds_per_sample=0.01, single_call_seconds=300)


def run_benchmarks(
    folder: Path, note: Callable[[str], None] = lambda _line: None, asv: PlainAsv | None = None
) -> list[BenchmarkedCommit]:
    """Benchmark every commit of `origin/acme/tinypure.git` below *folder*."""
    cache = MirrorCache(folder / "mirrors", (folder / "origin").as_uri())
    engine = ProcessEngine(folder / "engine", LIMITS)
    asked = find_commits(cache, REPOSITORY, ["first", "first..main"])
    results = folder / ("asv" if asv else "results-of-ours")
    images = CommitImages(
        engine=engine,
        cache=cache,
        mirror=asked.mirror,
        resolver=Resolver(folder / "locks"),
        os_image="unused:{python}",
        repository_id=7,
        folder=folder / "images",
        run_id="run",
    )
    benchmarks = CommitBenchmarks(
        images, results, results / "results", machine_facts("here"), limits=LIMITS, plan=PLAN, asv=asv, note=note
    )
    engine.clean()
    with asked.mirror:
        return benchmarks.run(asked.commits)


def main() -> None:
    """Benchmark in the folder that is named, until the second round of anything begins."""

    def note(line: str) -> None:
        if "round 2" in line:
            os.kill(os.getpid(), signal.SIGKILL)

    run_benchmarks(Path(sys.argv[1]), note)


if __name__ == "__main__":
    main()
