"""A request to benchmark commits, from the command line or the asset."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uv
from pydantic import Field, ValidationError, field_validator

from formulacode_dagster.building.engines.machines import Machine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.measuring.measurement.cores import leased_cores
from formulacode_dagster.models.base import Frozen, first_fault
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.operating.store.attempts import contexts_of
from formulacode_dagster.operating.store.lookup import repository_id
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.offline.identity import derived_id

from .asv_results import RESULTS, machine_facts, write_json
from .benchmark import BenchmarkedCommit, CommitBenchmarks
from .commits import find_commits
from .images import CommitImages
from .plain_asv import PlainAsv
from .sampling import RoundsPlan
from .tuning import read_tuning

IMAGES = "images"
TUNING = "tuning.json"


class BenchmarkOrder(Frozen):
    """Commits of a repository, and how they are benchmarked."""

    repository: str = Field(description="owner/name")
    commits: tuple[str, ...] = Field(description="hashes, branches, tags, and ranges first..last, without the first")
    steps: int | None = Field(default=None, ge=1, description="at most so many of them, evenly spread")
    plan: RoundsPlan = Field(default=RoundsPlan(), description="the effort spent on each")
    suite: str = Field(default="", description="the commit whose suite is used for all; empty: the newest of them")
    as_of: str = Field(default="", description="the day, YYYY-MM-DD, of all environments; empty: that of each commit")
    machine: str = Field(default="", description="name of this machine in results; empty: its host name")
    asv: str = Field(default="", description="arguments of `asv run`, which benchmarks in the place of our sampler")
    again: bool = Field(default=False, description="retry earlier failures")

    @field_validator("plan")
    @classmethod
    def _is_pattern(cls, plan: RoundsPlan) -> RoundsPlan:
        try:
            re.compile(plan.pattern)
        except re.error as error:
            raise ValueError(f"{plan.pattern!r} is not a regular expression: {error}") from error
        return plan

    @field_validator("as_of")
    @classmethod
    def _is_day(cls, as_of: str) -> str:
        if as_of:
            datetime.strptime(as_of, "%Y-%m-%d").replace(tzinfo=UTC)
        return as_of

    def folder(self, home: Path) -> Path:
        """Folder of the results below *home*, unless another folder is given."""
        return home / "commit-benchmarks" / self.repository.replace("/", "__")


def order_of(**fields: Any) -> BenchmarkOrder:
    """Create an Order from *fields*; raises ConfigurationError if they are invalid."""
    try:
        return BenchmarkOrder.model_validate(fields)
    except ValidationError as error:
        raise ConfigurationError("this cannot be benchmarked", why=first_fault(error)) from error


def benchmark_commits(
    order: BenchmarkOrder,
    folder: Path,
    *,
    results: Path | None = None,
    engine: Engine,
    cache: MirrorCache,
    resolver: Resolver,
    os_image: str,
    limits: ResourceLimits,
    machine: Machine,
    run_id: str,
    note: Callable[[str], None],
) -> list[BenchmarkedCommit]:
    """Run *order* and write to *folder*; returns the state of each commit, oldest first.

    asv's *results* are below it unless another folder is named.

    Of the database of *machine* only the repository's id is read, so that its commits and its tasks share layers of
    their images, and the recipes that its images were built by.
    Raises as `find_commits` and `CommitBenchmarks.run`.
    """
    asked = find_commits(cache, order.repository, order.commits, steps=order.steps)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", order.machine or platform.node()) or "machine"
    as_of = datetime.fromisoformat(order.as_of).replace(tzinfo=UTC) if order.as_of else None
    with machine.database.transaction() as connection:
        found = repository_id(connection, order.repository)
        number = derived_id(order.repository) if found is None else found
        contexts = list(contexts_of(connection, number))
    images = CommitImages(
        engine=engine,
        cache=cache,
        mirror=asked.mirror,
        resolver=resolver,
        os_image=os_image,
        repository_id=number,
        folder=folder / IMAGES,
        run_id=run_id,
        as_of=as_of,
        contexts=contexts,
        turn=machine.building,
    )
    arguments = shlex.split(order.asv)
    cores = leased_cores(machine)
    benchmarks = CommitBenchmarks(
        images=images,
        folder=folder,
        results=results or folder / RESULTS,
        machine=machine_facts(name),
        limits=limits,
        plan=order.plan,
        suite_sha=asked.mirror.resolve(order.suite) if order.suite else "",
        asv=PlainAsv(arguments, order.plan.max_seconds, uv.find_uv_bin(), run_id, cores) if arguments else None,
        again=order.again,
        note=note,
        cores=cores,
    )
    engine.clean()
    write_json(folder / TUNING, {finding.name: finding.model_dump(mode="json") for finding in read_tuning()})
    return benchmarks.run(asked.commits)
