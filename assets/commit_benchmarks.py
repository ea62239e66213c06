"""`commit_benchmarks`: commits of a dashboard's repository built and timed here, as raw results of asv."""

from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from resources.containers import ContainersResource
from resources.dashboards import DashboardsResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .published_sites.dashboard_asset import DASHBOARDS, dashboard_run
from .stage_asset import OWNER

COLUMNS = {
    "commit": "the commit",
    "state": "`done` or `failed`",
    "rounds": "turns that it has had by now, of all runs",
    "benchmarks": "benchmarks of which there are results",
    "environment": "hash of its lock: if it differs from the previous commit's, a package may have caused a step",
    "reason": "why it failed",
}


class CommitBenchmarksConfig(dg.Config):
    """Run config of `commit_benchmarks`."""

    commits: list[str] = Field(description="hashes, branches, tags, and ranges first..last, without the first")
    steps: int | None = Field(default=None, description="at most so many of them, evenly spread")
    rounds: int = Field(default=2, description="turns of each commit, between those of the others")
    processes: int = Field(default=5, description="fresh processes of a round, a sample in each")
    pattern: str = Field(default="", description="regular expression of the benchmarks' names; empty: all")
    suite: str = Field(default="", description="commit whose suite is used for all; empty: the newest of them")
    as_of: str = Field(default="", description="day (YYYY-MM-DD) of all environments; empty: that of each commit")
    asv: str = Field(default="", description="benchmark with plain asv and these arguments of `asv run`")
    again: bool = Field(default=False, description="retry earlier failures")


@dg.asset(
    partitions_def=DASHBOARDS,
    group_name="measure",
    kinds={"asv", "docker"},
    owners=[OWNER],
    description="One row is a commit that was benchmarked on request, built like the base of a task. The output is raw "
    "results of asv, which `benchmark_results` of the dashboard reads.",
    code_version="1",
    metadata={
        "dagster/column_schema": dg.TableSchema(
            [dg.TableColumn(name, description=meaning) for name, meaning in COLUMNS.items()]
        )
    },
    pool="measure",
)
def commit_benchmarks(
    context: dg.AssetExecutionContext,
    config: CommitBenchmarksConfig,
    postgres: PostgresResource,
    boards: DashboardsResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
) -> dg.MaterializeResult[Any]:
    """Benchmark commits of the dashboard's repository; a run that was stopped is gone on with."""
    from formulacode_dagster.measuring.commit_benchmarks.benchmark import CommitState
    from formulacode_dagster.measuring.commit_benchmarks.order import benchmark_commits, order_of

    with dashboard_run(context, boards) as dashboard:
        effort = {"rounds": config.rounds, "processes": config.processes, "pattern": config.pattern}
        asked = config.model_dump(exclude=set(effort))
        order = order_of(repository=dashboard.repository, plan=effort, **asked)
        engine, why = containers.engine_for_repositories([order.repository])
        context.log.info(why)
        machine = containers.machine(postgres.database(), engine, context.log.info)
        standing = benchmark_commits(
            order,
            boards.folder(dashboard.name) / "commits",
            results=Path(dashboard.results),
            engine=engine,
            cache=mirrors.cache(),
            resolver=containers.resolver(machine.building),
            os_image=containers.settings.os_image,
            limits=containers.limits,
            machine=machine,
            run_id=context.run.run_id,
            note=context.log.info,
        )
    rows = [
        (each.sha, each.state.value, each.rounds, each.benchmarks, each.lock_sha256[:12], each.reason)
        for each in standing
    ]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "worked_in_this_run": sum(each.worked for each in standing),
            "failed": sum(each.state is CommitState.FAILED for each in standing),
            "commits": dg.MetadataValue.table([dg.TableRecord(dict(zip(COLUMNS, row, strict=True))) for row in rows]),
            "results": dg.MetadataValue.path(dashboard.results),
            "engine": why,
        }
    )
