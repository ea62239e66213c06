"""Pull requests for `bench/images.py`, and their build input: planned as the platform plans."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from merged_facts import merged_facts

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.building.specs.spec import plan_build
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from sandbox.samples.generate import generate


@dataclass(frozen=True)
class Task:
    """One pull request, planned."""

    item: str
    spec: BuildSpec
    mirror: Mirror


def plan_tasks(
    options: argparse.Namespace, folder: Path, resolver: Resolver, engine: Engine, os_image: str
) -> list[Task]:
    """Return the first plannable pull requests of the month, as many as requested; report the others.

    Raises SystemExit if there are fewer than two.
    """
    repositories = options.repositories.absolute() if options.repositories else generate(folder / "samples").folder
    merged = [
        pull_request
        for name in _names(repositories, options.repository)
        for pull_request in merged_facts(repositories, name)
    ]
    chosen = _of_one_month(merged, options.month, options.count)
    cache = MirrorCache(folder / "mirrors", f"file://{repositories}")
    tasks: list[Task] = []
    for facts in chosen:
        if len(tasks) == options.count:
            break
        try:
            tasks.append(_plan(facts, cache, resolver, engine, os_image))
        except (Rejection, ItemFailure) as end:
            print(f"{facts.repository}#{facts.number} is left out: {end}", file=sys.stderr)
    if len(tasks) < 2:
        sys.exit("fewer than two pull requests can be planned: name another repository or month")
    return tasks


def _names(repositories: Path, wanted: str) -> list[str]:
    found = sorted(path.relative_to(repositories).as_posix()[:-4] for path in repositories.glob("*/*.git"))
    return [name for name in found if wanted in ("", name)]


def _of_one_month(merged: list[MergedPullRequest], month: str, count: int) -> list[MergedPullRequest]:
    """Pull requests of one repository and month, in the order of their merges: the newest month with *count*, else the
    fullest.
    """
    sizes = Counter(
        (pull_request.month, pull_request.repository) for pull_request in merged if month in ("", pull_request.month)
    )
    if not sizes:
        sys.exit("no pull request was merged there")
    enough = [key for key, size in sizes.items() if size >= count]
    key = max(enough) if enough else max(sizes, key=lambda name: (sizes[name], name))
    return sorted(
        (pull_request for pull_request in merged if (pull_request.month, pull_request.repository) == key),
        key=lambda pull_request: pull_request.merged_at,
    )


def _plan(facts: MergedPullRequest, cache: MirrorCache, resolver: Resolver, engine: Engine, os_image: str) -> Task:
    month = Month.parse(facts.month)
    mirror = cache.ensure(facts.repository, commits=(facts.merge_commit_sha, facts.head_sha))
    change, _ = change_of(mirror, facts)
    pr = PullRequest(facts=facts, change=change)
    environment = plan_environment(mirror, pr, month=month, interpreters=engine.interpreters(), resolver=resolver)
    anchor = mirror.anchor(change.base_sha, month.start)
    spec = plan_build(pr=pr, environment=environment, anchor_sha=anchor, os_image=os_image)
    if spec.submodules:
        raise ItemFailure(FailureKind.SUBMODULE, "a flat Dockerfile here knows none")
    return Task(f"{facts.repository}#{facts.number}", spec, mirror)
