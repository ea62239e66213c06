"""One contender of `bench/intake.py`, in its own process: its result, its time, its memory.

python bench/intake_runs.py ours|rate|baseline|patches URL OUTPUT …

It never sees the truth: it is given names and ids as discovery saw them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from intake_baseline import Baseline
from intake_world import MONTH

RUNS = 4
TOKEN = "bench"  # noqa: S105 - the sandbox takes any


def main() -> None:
    """Run the contender, and write its result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("contender", choices=("ours", "rate", "baseline", "patches"))
    parser.add_argument("url")
    parser.add_argument("output", type=Path)
    parser.add_argument("--repositories", type=Path, help="as discovery saw them")
    parser.add_argument("--seconds", type=float, default=0.0, help="rate: for how long to go on")
    parser.add_argument("--facts", type=Path, help="patches: what `ours` wrote")
    parser.add_argument("--served", type=Path, help="patches: where to clone from")
    parser.add_argument("--patches", type=int, default=0, help="patches: how many")
    options = parser.parse_args()
    if options.contender == "patches":
        result = patches(options.facts, options.served, options.patches)
    elif options.contender == "baseline":
        result = asyncio.run(baseline(options.url, names(options.repositories)))
    elif options.contender == "rate":
        result = asyncio.run(rate(options.url, rows(options.repositories), options.seconds))
    else:
        result = asyncio.run(ours(options.url, rows(options.repositories)))
    options.output.write_text(json.dumps(result | {"peak_mb": peak_megabytes()}))


def rows(path: Path) -> list[Any]:
    """Discovery's rows."""
    from formulacode_dagster.models.repository import Repository

    return [Repository.model_validate(row) for row in json.loads(path.read_text())]


def names(path: Path) -> list[str]:
    """Only their names: all that the predecessor kept."""
    return [row["full_name"] for row in json.loads(path.read_text())]


async def ours(url: str, repositories: list[Any]) -> dict[str, Any]:
    """The intake of this platform, once; every repository's window ends in its rows or in a named failure."""
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as home:
        async with source_of(url, Path(home)) as source:
            started = time.monotonic()
            windows, failures = await take_in(source, repositories)
            seconds = time.monotonic() - started
            usage = [usage.model_dump(mode="json") for usage in source.usage()]
    pulls = {
        window.count.repository_id: [pull_request.model_dump(mode="json") for pull_request in window.pull_requests]
        for window in windows
    }
    return {"seconds": seconds, "failures": failures, "pulls": pulls, "usage": usage}


async def rate(url: str, repositories: list[Any], seconds: float) -> dict[str, Any]:
    """The month repeatedly, by as many concurrent runs as a backfill has; whether each found the same, and the rate.

    The runs share one home, and by it their pace, as all runs of a machine do.
    """
    import httpx

    checksums: dict[int, set[str]] = defaultdict(set)
    steps: list[tuple[float, int]] = []
    took_in = 0
    until = time.monotonic() + seconds

    async def go_on(home: Path) -> None:
        nonlocal took_in
        async with source_of(url, home) as source:
            while time.monotonic() < until:
                windows, _ = await take_in(source, repositories)
                took_in += sum(window.count.stored for window in windows)
                for window in windows:
                    checksums[window.count.repository_id].add(window.count.checksum)

    async def watch() -> None:
        async with httpx.AsyncClient(base_url=url) as http:
            while not steps or steps[-1][0] < until:
                books = (await http.get("/_sandbox/calls")).json()
                steps.append((time.monotonic(), books["endpoints"].get("graphql", 0)))
                await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))

    with tempfile.TemporaryDirectory(prefix="fc-bench-") as home:
        await asyncio.gather(watch(), *(go_on(Path(home)) for _ in range(RUNS)))
    differing = sum(len(found) > 1 for found in checksums.values())
    return {"runs": RUNS, "steps": steps, "pull_requests": took_in, "differing": differing}


def source_of(url: str, home: Path) -> Any:
    """Our source, paced as it is paced by default."""
    from formulacode_dagster.models.items import Stage
    from formulacode_dagster.sources.github.source import GitHubSource
    from formulacode_dagster.sources.github.transport.client import GitHubTransport

    random.seed(1)
    return GitHubSource(GitHubTransport(url, [TOKEN], home=home), Stage.PULL_REQUESTS, MONTH.key, "bench")


async def take_in(source: Any, repositories: list[Any]) -> tuple[list[Any], dict[str, str]]:
    """Windows, and by name the failures of those that have none."""
    from formulacode_dagster.models.errors import ItemFailure

    failures: dict[str, str] = {}
    windows = []

    def finish(repository: Any, end: Any) -> None:
        if isinstance(end, ItemFailure):
            failures[repository.full_name] = f"{end.kind}: {end}"
        elif isinstance(end, Exception):
            raise end
        else:
            windows.append(end)

    await source.take_in(MONTH, repositories, finish)
    return windows, failures


async def baseline(url: str, repositories: list[str]) -> dict[str, Any]:
    """The predecessor's method."""
    since, until = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (MONTH.start, MONTH.end))
    started = time.monotonic()
    taken = await Baseline(url, TOKEN, since, until).take_in(repositories)
    seconds = time.monotonic() - started
    return {"seconds": seconds, **vars(taken)}


def patches(facts: Path, served: Path, most: int) -> dict[str, Any]:
    """Base and patch of so many pull requests, read from mirrors that are cloned for it."""
    from formulacode_dagster.models.pull_request import MergedPullRequest
    from formulacode_dagster.sources.git.changes import change_of
    from formulacode_dagster.sources.git.landing import wanted_commits
    from formulacode_dagster.sources.git.mirror import MirrorCache

    told = json.loads(facts.read_text())["pulls"]
    pulls = [MergedPullRequest.model_validate(pull) for group in told.values() for pull in group][:most]
    by_repository: dict[str, list[MergedPullRequest]] = defaultdict(list)
    for pull in pulls:
        by_repository[pull.repository].append(pull)
    size = 0
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        cache = MirrorCache(Path(folder), served.as_uri())
        started = time.monotonic()
        for name, group in by_repository.items():
            mirror = cache.ensure(name, commits=wanted_commits(group))
            size += sum(len(change_of(mirror, pull)[1]) for pull in group)
        seconds = time.monotonic() - started
    return {"seconds": seconds, "patches": len(pulls), "bytes": size, "repositories": len(by_repository)}


def peak_megabytes() -> float:
    """The most memory this process ever held (VmHWM)."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match[1]) / 1024 if match else 0.0


if __name__ == "__main__":
    main()
