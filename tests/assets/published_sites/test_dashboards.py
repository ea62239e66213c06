"""The assets of a dashboard: from a site and raw results to breakpoints, and their comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.all import ASSET_CHECKS, DASHBOARD_ASSETS
from assets.published_sites.dashboard_asset import DASHBOARDS
from formulacode_dagster.measuring.breakpoints.persistence import load_breakpoints
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.orchestration.jobs import listed_dashboards
from formulacode_dagster.sources.dashboards.persistence import load_site
from formulacode_dagster.sources.dashboards.sites import Dashboard, add_dashboard
from resources.dashboards import DashboardsResource
from resources.defaults import default_resources
from tests.support.asv_results import write_results
from tests.support.asv_site import GRAPHS, PLAIN, site_content, write_site

NAMES = [asset.definition.key.to_user_string() for asset in DASHBOARD_ASSETS]
CHECKS = [check for check in ASSET_CHECKS if {key.asset_key.to_user_string() for key in check.check_keys} <= set(NAMES)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Path:
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


class Run:
    """A run of all assets of one dashboard."""

    def __init__(self, instance: dg.DagsterInstance, name: str = "sample", **config: Any) -> None:
        instance.add_dynamic_partitions(str(DASHBOARDS.name), [name])
        self.result = dg.materialize(
            [*(asset.definition for asset in DASHBOARD_ASSETS), *CHECKS],
            partition_key=name,
            resources=default_resources(),
            instance=instance,
            raise_on_error=False,
            run_config={"ops": {key: {"config": value} for key, value in config.items()}},
        )
        checks = self.result.get_asset_check_evaluations()
        self.checks = {check.check_name: (check.passed, check.description) for check in checks}

    def metadata(self, name: str) -> dict[str, Any]:
        (event,) = self.result.asset_materializations_for_node(name)
        return {key: value.value for key, value in event.metadata.items()}

    @property
    def error(self) -> str:
        (failed,) = (event for event in self.result.all_events if event.is_step_failure)
        return str(failed.event_specific_data.user_failure_data.description)


@pytest.mark.slow
def test_a_site_and_raw_results_become_tables_breakpoints_and_replication(
    home: Path, tmp_path: Path, database: Database, dagster_instance: dg.DagsterInstance
) -> None:
    commits = [f"{100 + 2 * number:040x}" for number in range(12)]
    site, raw = write_site(tmp_path / "site"), write_results(tmp_path / "raw", commits)
    add_dashboard(home, Dashboard(name="sample", site=site.as_uri(), results=str(raw), repository="example/sample"))
    run = Run(dagster_instance)
    assert run.result.success
    # the only regression of the site that asv by itself can reproduce
    passed, told = run.checks["own_regressions_are_found"]
    assert passed or "Install asv" in told
    assert all(passed for name, (passed, _) in run.checks.items() if name != "own_regressions_are_found"), run.checks
    assert set(run.checks) == {
        "complete",
        "in_order",
        "every_result_counts",
        "own_regressions_are_found",
        "steps_agree_in_direction",
    }
    assert run.metadata("dashboards")["dagster/row_count"] == 48
    # the site knows every commit of the results, so that both number them alike
    assert run.metadata("benchmark_results")["order"] == "published"
    assert "data:image/png" in run.metadata("breakpoints")["published_seeded_picture"]
    replicated = run.metadata("replication")
    assert (replicated["seeded_commits"], replicated["seeded_only_other"], replicated["seeded_pairs"]) == (1, 0, 2)
    assert replicated["seeded_same_sign"] == 1.0
    with database.transaction() as connection:
        for source in Source:
            kept = load_breakpoints(connection, "sample", source)
            assert kept.steps["after_hash"].unique().to_list() == [commits[6]]
            assert kept.commits.select("improved", "regressed", "pull_request").rows() == [(2, 0, None)]
        assert load_site(connection, "sample", Source.RESULTS).points["low"].count() == 24
    folder = home / "dashboards" / "sample"
    assert pl.read_parquet(folder / "results" / "points.parquet").height == 48
    assert pl.read_parquet(folder / "published" / "steps_seeded.parquet").height == 2
    assert PLAIN in (folder / "replication_seeded.html").read_text()
    assert json.loads((folder / "results" / "site" / "index.json").read_text())["project"] == "sample"


@pytest.mark.slow
def test_broken_files_are_named_and_raw_results_suffice_for_breakpoints(
    home: Path, tmp_path: Path, dagster_instance: dg.DagsterInstance
) -> None:
    index = site_content()["index.json"]
    index["revision_to_date"]["104"] = 0
    graph = f"{GRAPHS}/{PLAIN}.json"
    broken = write_site(tmp_path / "site", **{graph: b"<html>", "index.json": index})
    add_dashboard(home, Dashboard(name="broken", site=broken.as_uri()))
    run = Run(dagster_instance, "broken")
    assert run.result.success
    assert not run.checks["complete"][0]
    assert "2 of 3 graphs" in run.checks["complete"][1]
    assert not run.checks["in_order"][0]
    raw = write_results(tmp_path / "raw", **{"i7/broken.json": b"{"})
    add_dashboard(home, Dashboard(name="raw", results=str(raw)))
    run = Run(dagster_instance, "raw")
    assert run.result.success
    assert run.metadata("dashboards")["site"] == "none"
    assert run.metadata("benchmark_results")["order"] == "dates"
    assert run.metadata("breakpoints")["results_seeded_commits"] == 1
    assert not run.checks["every_result_counts"][0]


@pytest.mark.slow
def test_without_a_site_and_results_nothing_is_called_done(home: Path, dagster_instance: dg.DagsterInstance) -> None:
    add_dashboard(home, Dashboard(name="nothing", results="nowhere"))
    run = Run(dagster_instance, "nothing")
    assert not run.result.success
    assert "there is no data on dashboard nothing" in run.error


def test_a_site_that_cannot_be_read_fails_its_asset_with_the_reason(
    home: Path, tmp_path: Path, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_RETRY_SECONDS", "0")
    add_dashboard(home, Dashboard(name="gone", site=(tmp_path / "gone").as_uri()))
    run = Run(dagster_instance, "gone")
    assert not run.result.success
    assert "cannot read index.json" in run.error


def test_every_dashboard_that_is_listed_has_a_partition(home: Path, dagster_instance: dg.DagsterInstance) -> None:
    def tick() -> list[str]:
        context = dg.build_sensor_context(instance=dagster_instance)
        told = listed_dashboards(context, boards=DashboardsResource())
        assert isinstance(told, dg.SensorResult)
        return [key for request in told.dynamic_partitions_requests or [] for key in request.partition_keys]

    assert tick() == ["astropy", "numpy", "pandas", "scikit-learn", "scipy"]
    dagster_instance.add_dynamic_partitions(str(DASHBOARDS.name), tick())
    assert tick() == []
    add_dashboard(home, Dashboard(name="sunpy", site="https://example.org/"))
    assert tick() == ["sunpy"]
    (home / "dashboards.toml").write_text("[")
    with pytest.raises(dg.Failure, match=r"dashboards\.toml"):
        tick()
