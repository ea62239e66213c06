"""Every asset with its checks, in the order of the graph."""

from __future__ import annotations

from importlib import import_module

from formulacode_dagster.models.items import Stage

from .commit_benchmarks import commit_benchmarks
from .published_sites.benchmark_results import benchmark_results
from .published_sites.breakpoints import breakpoints
from .published_sites.dashboards import dashboards
from .published_sites.replication import replication
from .stage_asset import StageAsset


def _asset_of(stage: Stage) -> StageAsset:
    """Return the asset of the stage's name in the file of that name."""
    asset: StageAsset = getattr(import_module(f"assets.{stage}"), stage)
    return asset


STAGE_ASSETS = tuple(_asset_of(stage) for stage in Stage)

DASHBOARD_ASSETS = (dashboards, benchmark_results, breakpoints, replication)

ASSETS = [
    *(asset.definition for asset in STAGE_ASSETS),
    *(asset.definition for asset in DASHBOARD_ASSETS),
    commit_benchmarks,
]
ASSET_CHECKS = [
    *(check.definition(asset.stage) for asset in STAGE_ASSETS for check in asset.checks),
    *(check.definition(asset.definition) for asset in DASHBOARD_ASSETS for check in asset.checks),
]
