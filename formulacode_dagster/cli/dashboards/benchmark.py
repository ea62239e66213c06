"""`fc-data benchmark`: commits of a repository built and timed one after the other, as asv's results."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from formulacode_dagster.cli.console import console, table_of

if TYPE_CHECKING:
    from formulacode_dagster.measuring.commit_benchmarks.benchmark import BenchmarkedCommit


def benchmark(
    repository: Annotated[str, typer.Option(help="owner/name.")],
    commits: Annotated[
        list[str], typer.Option(help="Hashes, branches, tags, ranges first..last (without the first). May be repeated.")
    ],
    into: Annotated[
        Path | None, typer.Option(help="Folder of the results.", file_okay=False, show_default="one under FC_HOME")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="At most so many of them, evenly spread.", show_default="all")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each commit, between those of the others.")] = 2,
    processes: Annotated[int, typer.Option(min=1, help="Fresh processes of a round, a sample in each.")] = 5,
    bench: Annotated[str, typer.Option(help="Regular expression of the benchmarks' names.", show_default="all")] = "",
    seconds: Annotated[float, typer.Option(min=1, help="Seconds after which a round begins no more processes.")] = 600,
    suite: Annotated[str, typer.Option(help="Commit whose suite is used for all.", show_default="the newest")] = "",
    as_of: Annotated[
        str, typer.Option(help="Day (YYYY-MM-DD) of all environments.", show_default="that of each commit")
    ] = "",
    machine: Annotated[str, typer.Option(help="Name of this machine in the results.", show_default="its name")] = "",
    asv: Annotated[
        str, typer.Option(help="Benchmark with plain asv and these arguments of `asv run`.", show_default="our sampler")
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Retry earlier failures.", show_default="no")] = False,
) -> None:
    """Build and time commits of a repository; results are asv's. Run again, it goes on; status 1: one failed."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.measuring.commit_benchmarks.benchmark import CommitState
    from formulacode_dagster.measuring.commit_benchmarks.order import benchmark_commits, order_of
    from resources.containers import ContainersResource
    from resources.mirrors import MirrorsResource
    from resources.settings import make_home

    order = order_of(
        repository=repository,
        commits=tuple(commits),
        steps=steps,
        plan={"rounds": rounds, "processes": processes, "max_seconds": seconds, "pattern": bench},
        suite=suite,
        as_of=as_of,
        machine=machine,
        asv=asv,
        again=again,
    )
    folder = into or order.folder(make_home())
    containers = ContainersResource()
    engine, why = containers.engine_for_repositories([repository])
    console.print(why, highlight=False)
    with database() as store, console.status("benchmarking") as status:

        def tell(line: str) -> None:
            status.update(escape(line))

        shared = containers.machine(store, engine, tell)
        standing = benchmark_commits(
            order,
            folder,
            engine=engine,
            cache=MirrorsResource().cache(),
            resolver=containers.resolver(shared.building),
            os_image=containers.settings.os_image,
            limits=containers.limits,
            machine=shared,
            run_id=uuid.uuid4().hex,
            note=tell,
        )
    _show(standing, folder)
    raise typer.Exit(1 if any(commit.state is CommitState.FAILED for commit in standing) else 0)


def _show(standing: Sequence[BenchmarkedCommit], folder: Path) -> None:
    table = table_of("commit", "state", "rounds", "benchmarks", "environment", "why")
    for commit in standing:
        why = f"{commit.reason}: {commit.detail}"[:200] if commit.reason else ""
        table.add_row(
            commit.sha[:10],
            commit.state,
            str(commit.rounds),
            str(commit.benchmarks),
            commit.lock_sha256[:8],
            escape(why),
        )
    console.print(table)
    worked = sum(commit.worked for commit in standing)
    console.print(f"{worked} of {len(standing)} worked on; results are in {folder}", markup=False, highlight=False)
