"""Every asset with its checks, in the order of the graph."""

from __future__ import annotations

from .benchmark_results import benchmark_results
from .breakpoints import breakpoints
from .classifications import classifications
from .commit_benchmarks import commit_benchmarks
from .dashboards import dashboards
from .discussions import discussions
from .environments import environments
from .exports import exports
from .images import images
from .measurements import measurements
from .monthly_report import monthly_report
from .problem_statements import problem_statements
from .published_dataset import published_dataset
from .published_images import published_images
from .pull_requests import pull_requests
from .replays import replays
from .replication import replication
from .repositories import repositories

STAGE_ASSETS = (
    repositories,
    pull_requests,
    classifications,
    discussions,
    problem_statements,
    environments,
    images,
    measurements,
    published_images,
    published_dataset,
    replays,
    exports,
    monthly_report,
)

DASHBOARD_ASSETS = (dashboards, benchmark_results, breakpoints, replication)

ASSETS = [*(asset.definition for asset in (*STAGE_ASSETS, *DASHBOARD_ASSETS)), commit_benchmarks]
ASSET_CHECKS = [
    *(check.definition(asset.stage) for asset in STAGE_ASSETS for check in asset.checks),
    *(check.definition(asset.definition) for asset in DASHBOARD_ASSETS for check in asset.checks),
]
