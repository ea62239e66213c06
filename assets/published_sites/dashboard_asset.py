"""Declares an asset of a dashboard: its partitions, the common frame, and the checks of its tables."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, OutsideSystemError
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.views import SERIES_RELATIONS
from formulacode_dagster.releasing.reporting.pictures import in_markdown
from formulacode_dagster.sources.dashboards.sites import Dashboard
from resources.dashboards import DashboardsResource
from resources.postgres import PostgresResource

from ..checks import partitioned_check, result_of
from ..stage_asset import OWNER, table_metadata
from ..stopping import retry_or_failure, stoppable

if TYPE_CHECKING:
    from formulacode_dagster.sources.dashboards.tables import SiteTables

DASHBOARDS = dg.DynamicPartitionsDefinition(name="dashboards")
"""One partition a dashboard that has a name; the sensor `listed_dashboards` adds those that are listed."""
GROUP = "dashboards"
SHOWN_NAMES = 50


@dataclass(frozen=True)
class JudgedDashboard:
    """The dashboard that a check judges, and the folder of its tables."""

    database: Database
    name: str

    def site(self, source: Source) -> "SiteTables | None":
        """Return the stored site by *source*; None if there is nothing."""
        from formulacode_dagster.sources.dashboards.persistence import kept_site

        return kept_site(self.database, self.name, source)


@dataclass(frozen=True)
class DashboardCheck:
    """One check of a dashboard's asset. It warns: we cannot fix what others publish."""

    judge: Callable[[JudgedDashboard], CheckFinding]

    @property
    def name(self) -> str:
        """Name of the judging function."""
        return self.judge.__name__

    def definition(self, asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
        """The check as Dagster runs it, dashboard by dashboard."""

        @partitioned_check(
            asset=asset,
            name=self.name,
            description=inspect.getdoc(self.judge),
            partitions_def=DASHBOARDS,
        )
        def evaluate(context: dg.AssetCheckExecutionContext, postgres: PostgresResource) -> dg.AssetCheckResult:
            try:
                judgement = self.judge(JudgedDashboard(postgres.database(), context.partition_key))
            except FormulaCodeError as error:
                raise dg.Failure(description=str(error), allow_retries=False) from error
            return result_of(judgement, blocking=False)

        return evaluate


@dataclass(frozen=True)
class DashboardAsset:
    """An asset of a dashboard, and the checks of its tables."""

    definition: dg.AssetsDefinition
    checks: tuple[DashboardCheck, ...]


def dashboard_asset(
    *,
    kinds: set[str],
    description: str,
    deps: Sequence[DashboardAsset] = (),
    checks: Sequence[DashboardCheck] = (),
    freshness: dg.FreshnessPolicy | None = None,
) -> Callable[[Callable[..., dg.MaterializeResult[Any]]], DashboardAsset]:
    """`@dg.asset` with the common options of dashboard assets; columns follow the relation of its name."""

    def declare(body: Callable[..., dg.MaterializeResult[Any]]) -> DashboardAsset:
        columns = SERIES_RELATIONS[body.__name__].columns
        shown = [dg.TableColumn(column.name, column.type, description=column.description) for column in columns]
        define = dg.asset(
            deps=[dependency.definition for dependency in deps],
            partitions_def=DASHBOARDS,
            group_name=GROUP,
            kinds={*kinds, "postgres"},
            owners=[OWNER],
            description=description,
            code_version="1",
            metadata={"dagster/column_schema": dg.TableSchema(shown), **table_metadata(body.__name__)},
            freshness_policy=freshness,
        )
        return DashboardAsset(define(body), tuple(checks))

    return declare


@contextmanager
def dashboard_run(context: dg.AssetExecutionContext, boards: DashboardsResource) -> Iterator[Dashboard]:
    """The frame around an asset: the dashboard of its partition; errors are converted, and retried once."""
    try:
        with stoppable(context):
            if not context.has_partition_key:
                raise ConfigurationError(
                    "this was launched without a dashboard", remedy="Launch it for one partition, for example numpy"
                )
            yield boards.named(context.partition_key)
    except OutsideSystemError as error:
        raise retry_or_failure(context, error) from error
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def site_metadata(site: "SiteTables", folder: Path) -> dict[str, Any]:
    """Return an asset's metadata on *site*, whose Parquet is in *folder*."""
    from formulacode_dagster.sources.dashboards.picture import draw_points

    by_kind = site.faults.group_by("kind", maintain_order=True).len().rows()
    return {
        "project": site.project,
        "dagster/uri": folder.absolute().as_uri(),
        "dagster/row_count": site.points.height,
        "series": site.series.height,
        "points_measured": site.points["value"].count(),
        "commits": site.revisions.height,
        "graphs_read": site.graphs_read,
        "graphs_expected": site.graphs_expected,
        "summaries_read": site.summaries_read,
        "own_regressions": site.regressions.height,
        "faults": dg.MetadataValue.table(
            [dg.TableRecord({"kind": kind, "files": count}) for kind, count in by_kind],
            dg.TableSchema([dg.TableColumn("kind"), dg.TableColumn("files", "int")]),
        ),
        "silent_benchmarks": site.silent_benchmarks()[:SHOWN_NAMES],
        "parquet": dg.MetadataValue.path(str(folder)),
        "points": dg.MetadataValue.md(in_markdown("points", draw_points(site))),
    }
