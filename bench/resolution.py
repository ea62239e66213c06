"""Cost of planning and pinning one commit's environment, cold and warm, and whether the result is reproducible.

Each commit is planned three times: with nothing kept; with uv's cache of the index kept and its answers forgotten; with
everything kept. Interpreter, locks, notes and drops must be equal all three times. A commit without a lock counts too:
its failure must be the same.

python bench/resolution.py                        the sample repositories
    python bench/resolution.py --repositories DIR     pull requests of bench/yield_pull_requests.toml, from bare mirrors

Needs the package index. The last line is JSON; the exit code is 1 if a repeat differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uv
from yield_of_builds import listed
from yield_trials import facts_of

from formulacode_dagster.building.engines.process.interpreters import installed_interpreters
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from sandbox.samples.generate import generate


@dataclass(frozen=True)
class Planned:
    """One commit: its outcome, the seconds of each pass, and whether all passes gave the same."""

    item: str
    outcome: str
    seconds: tuple[float, float, float]
    calls: int
    same: bool


def main() -> None:
    """Plan every commit, print a table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--pull-requests", type=Path, default=Path(__file__).with_name("yield_pull_requests.toml"))
    parser.add_argument("--most", type=int, default=20, help="how many commits are planned, spread over the list")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fc-resolution-") as name:
        work = Path(name)
        if options.repositories is None:
            samples = generate(work / "samples")
            repositories, items = samples.folder, [pull_request.item for pull_request in samples.pull_requests]
        else:
            repositories = options.repositories.absolute()
            items = list(listed(tomllib.loads(options.pull_requests.read_text("utf-8"))["repository"], repositories))
        chosen = items[:: max(1, -(-len(items) // options.most))]
        cache = MirrorCache(work / "mirrors", f"file://{repositories}")
        planned = [measure(item, repositories, cache, work) for item in chosen]
    print(json.dumps(figures(planned)))
    if not all(plan.same for plan in planned):
        sys.exit(1)


def measure(item: str, repositories: Path, cache: MirrorCache, work: Path) -> Planned:
    """Plan *item* three times, from nothing kept to everything kept."""
    facts = facts_of(repositories, item)
    mirror = cache.ensure(facts.repository, commits=(facts.merge_commit_sha, facts.head_sha))
    pr = PullRequest(facts=facts, change=change_of(mirror, facts)[0])
    kept = work / "kept"
    found, seconds, calls = [], [], 0
    for forgotten in (kept, kept / "locks", None):
        if forgotten is not None:
            shutil.rmtree(forgotten, ignore_errors=True)
        resolver = Resolver(kept, interpreters=_interpreters)
        started = time.perf_counter()
        found.append(_plan(mirror, pr, resolver))
        seconds.append(time.perf_counter() - started)
        calls = calls or resolver.calls
    outcome = found[0][0]
    result = Planned(item, outcome, (seconds[0], seconds[1], seconds[2]), calls, len(set(found)) == 1)
    times = "  ".join(f"{value:6.1f}" for value in seconds)
    print(f"{item:42} {outcome:12} {times} s  {calls:3} calls{'' if result.same else '  DIFFERS'}", flush=True)
    return result


def figures(planned: Sequence[Planned]) -> dict[str, object]:
    """The last line: counts, medians and largest values in seconds."""
    summary: dict[str, object] = {
        "commits": len(planned),
        "locked": sum(plan.outcome.startswith("3.") for plan in planned),
        "identical": all(plan.same for plan in planned),
    }
    for position, name in enumerate(("cold", "index_kept", "warm")):
        values = [plan.seconds[position] for plan in planned]
        summary[f"{name}_seconds_median"] = round(statistics.median(values), 2) if values else None
        summary[f"{name}_seconds_largest"] = round(max(values), 2) if values else None
    return summary


def _plan(mirror: Mirror, pr: PullRequest, resolver: Resolver) -> tuple[str, str]:
    """The interpreter, or the kind of failure, and everything to compare."""
    try:
        environment = plan_environment(
            mirror, pr, month=Month.parse(pr.facts.month), interpreters=None, resolver=resolver
        )
    except Rejection as end:
        return end.reason.value, str(end)
    except ItemFailure as end:
        return end.kind, str(end)
    return environment.python, environment.model_dump_json()


def _interpreters() -> dict[str, Path]:
    return {minor: found.path for minor, found in installed_interpreters(uv.find_uv_bin()).items()}


if __name__ == "__main__":
    main()
