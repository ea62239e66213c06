"""`fc-data benchmark`, as a person types it."""

from __future__ import annotations

import json
import shlex

import dagster as dg
import pytest
from pydantic import ValidationError

from assets.commit_benchmarks import commit_benchmarks
from assets.published_sites.dashboard_asset import DASHBOARDS
from formulacode_dagster.measuring.commit_benchmarks.order import BenchmarkOrder
from formulacode_dagster.sources.dashboards.sites import Dashboard, add_dashboard
from resources.defaults import default_resources
from tests.support.git_world import BareRepository

COMMAND = "benchmark --repository owner/name --commits v1.0..v2.0 --steps 20"
CONFIG = '{"version": 1, "project": "name", "repo": ".", "benchmark_dir": "benchmarks"}'
SUITE = {"asv.conf.json": CONFIG, "benchmarks/__init__.py": "def time_it():\n    pass\n"}


@pytest.mark.slow
def test_the_command_of_the_documentation_benchmarks_commits(tmp_path, call_fc_data, database_url):
    repository = BareRepository(tmp_path / "origin/owner/name.git")
    marks = [repository.add("A suite of nothing", files=SUITE), repository.add("Second"), repository.add("Third")]
    repository.ref("refs/tags/v1.0", marks[0])
    repository.ref("refs/tags/v2.0", marks[2])
    shas = repository.write()
    settings = {
        "FC_ENGINE": "process",
        "FC_DATABASE_URL": database_url,
        "GITHUB_CLONE_URL": (tmp_path / "origin").as_uri(),
    }
    ran = call_fc_data(*shlex.split(COMMAND), **settings)
    # neither commit can be installed: both are reported, and the command says so
    assert (ran.returncode, ran.stderr) == (1, "")
    assert [shas[mark][:10] in ran.stdout for mark in marks] == [False, True, True]
    folder = tmp_path / "home/commit-benchmarks/owner__name"
    failures = [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]
    assert {failure["commit"]: failure["reason"] for failure in failures} == {
        shas[mark]: "package_root" for mark in marks[1:]
    }
    assert json.loads((folder / "tuning.json").read_bytes())["governor"]["tuned"] in ("yes", "no", "unknown")
    ran = call_fc_data(*shlex.split(COMMAND), **settings)
    assert "0 of 2 worked on" in ran.stdout
    ran = call_fc_data(*shlex.split(COMMAND), "--bench", "(", **settings)
    assert (ran.returncode, "not a regular expression" in ran.stderr) == (1, True)


@pytest.mark.parametrize("field", [{"as_of": "yesterday"}, {"steps": 0}, {"plan": {"rounds": 0}}])
def test_what_cannot_be_is_refused(field):
    with pytest.raises(ValidationError):
        BenchmarkOrder(repository="a/b", commits=("main",), **field)


@pytest.mark.slow
def test_the_asset_writes_where_the_dashboards_results_are_read(tmp_path, database_url, monkeypatch, dagster_instance):
    repository = BareRepository(tmp_path / "origin/owner/name.git")
    repository.add("A suite of nothing", files=SUITE)
    repository.add("Second")
    repository.write()
    for name, value in {
        "FC_HOME": str(tmp_path),
        "FC_ENGINE": "process",
        "FC_DATABASE_URL": database_url,
        "GITHUB_CLONE_URL": (tmp_path / "origin").as_uri(),
    }.items():
        monkeypatch.setenv(name, value)
    add_dashboard(tmp_path, Dashboard(name="ours", results=str(tmp_path / "raw"), repository="owner/name"))
    dagster_instance.add_dynamic_partitions(str(DASHBOARDS.name), ["ours"])
    known = default_resources()

    def run(**config):
        return dg.materialize(
            [commit_benchmarks],
            partition_key="ours",
            instance=dagster_instance,
            resources={name: known[name] for name in commit_benchmarks.required_resource_keys & known.keys()},
            run_config={"ops": {"commit_benchmarks": {"config": config}}},
            raise_on_error=False,
        )

    (event,) = run(commits=["main"]).asset_materializations_for_node("commit_benchmarks")
    told = {name: value.value for name, value in event.metadata.items()}
    # it cannot be installed, which is its row and stops nothing
    assert (told["dagster/row_count"], told["failed"], told["worked_in_this_run"]) == (1, 1, 1)
    assert told["commits"].records[0].data["reason"] == "package_root"
    (machine,) = (tmp_path / "raw").glob("*/machine.json")
    assert json.loads(machine.read_bytes())["version"] == 1
    assert not run(commits=["nothing"]).success
    assert not run(commits=["main"], rounds=0).success
