"""Guards: the code location loads by itself, quickly and without secrets, and a change of the graph shows in review."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from assets.all import STAGE_ASSETS
from formulacode_dagster.models.items import FROM_A_RELEASE, MONTH_STAGES, Stage
from formulacode_dagster.orchestration.build import build_definitions
from resources.documentation import SETTINGS

ROOT = Path(__file__).parents[3]
HEAVY = (
    "opentelemetry",
    "prometheus_client",
    "boto3",
    "polars",
    "matplotlib",
    "openai",
    "docker",
    "huggingface_hub",
    "scipy",
    "graphql",
    "uvicorn",
)
GRAPH = {
    "repositories": set(),
    "pull_requests": {"repositories"},
    "classifications": {"pull_requests"},
    "discussions": {"classifications"},
    "problem_statements": {"discussions"},
    "environments": {"classifications"},
    "images": {"environments"},
    "measurements": {"discussions", "images"},
    "published_images": {"measurements"},
    "gradings": {"problem_statements", "measurements", "published_images"},
    "published_dataset": {"problem_statements", "measurements", "published_images", "gradings"},
    "replays": {"published_dataset"},
    "exports": {"published_dataset"},
    "agent_results": {"published_dataset"},
    "monthly_report": {"published_dataset"},
}
"""Each asset of the month, and what it reads."""
DASHBOARD_GRAPH = {
    "dashboards": set(),
    "benchmark_results": {"dashboards"},
    "breakpoints": {"dashboards", "benchmark_results"},
    "replication": {"breakpoints"},
}
"""Each asset of a dashboard, and what it reads."""
ON_REQUEST: dict[str, set[str]] = {"commit_benchmarks": set()}
"""In no job: somebody asks for it, and says what of."""
OF_THE_PLATFORM: dict[str, set[str]] = {"operations": set()}
"""Not of a month: the current state of the platform."""
PER_ITEM = [name for name in GRAPH if name != "monthly_report"]
CHECKS = {
    **{(name, "failures_within_budget"): True for name in PER_ITEM},
    ("repositories", "not_empty"): True,
    ("repositories", "every_repository_resolves"): False,
    ("repositories", "searches_complete"): False,
    ("pull_requests", "counts_match"): True,
    ("pull_requests", "window_and_shas_valid"): True,
    ("pull_requests", "search_shows_all"): False,
    ("pull_requests", "mirror_knows_no_more"): False,
    ("classifications", "every_candidate_has_verdict"): True,
    ("classifications", "share_of_positives"): False,
    ("classifications", "accuracy_on_labelled_set"): False,
    ("problem_statements", "nothing_leaks"): True,
    ("environments", "every_lock_is_hashed"): True,
    ("environments", "interpreter_is_declared"): True,
    ("images", "verifications_hold"): True,
    ("images", "suites_load"): False,
    ("images", "reproduces"): False,
    ("measurements", "controls_within_promise"): True,
    ("measurements", "time_and_work_agree"): False,
    ("measurements", "speedup_is_real"): True,
    ("measurements", "right_by_their_tests"): True,
    ("published_images", "every_digest_pulled"): True,
    ("gradings", "probes_get_nothing"): True,
    ("published_dataset", "reads_back_equal"): True,
    ("published_dataset", "schema_and_ids_stable"): True,
    ("published_dataset", "released_tags_untouched"): True,
    ("replays", "tasks_are_confirmed"): False,
    ("exports", "folders_hold_the_release"): False,
    ("agent_results", "runs_belong_to_the_release"): True,
    ("agent_results", "no_infrastructure_failure_counts"): True,
    ("agent_results", "oracle_is_at_the_top"): False,
    ("agent_results", "regrades_agree"): False,
    ("dashboards", "complete"): False,
    ("dashboards", "in_order"): False,
    ("benchmark_results", "every_result_counts"): False,
    ("breakpoints", "own_regressions_are_found"): False,
    ("replication", "steps_agree_in_direction"): False,
}
"""Each check, and whether it blocks: then it is a gate for what reads its asset."""
BARE = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return build_definitions()


def test_the_graph_is_the_one_of_the_design(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    assert set(GRAPH) == {stage.value for stage in Stage}
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        *(GRAPH | DASHBOARD_GRAPH | ON_REQUEST | OF_THE_PLATFORM)
    }
    for name, upstream in (GRAPH | DASHBOARD_GRAPH | ON_REQUEST | OF_THE_PLATFORM).items():
        node = graph.get(dg.AssetKey(name))
        assert {key.to_user_string() for key in node.parent_keys} == upstream
        assert node.group_name in {"intake", "selection", "build", "measure", "release", "dashboards", "operations"}
        assert (node.group_name == "dashboards") is (name in DASHBOARD_GRAPH)
        assert all((node.owners, node.kinds, node.description))
        # the report is a page, every other asset a table
        assert ("dagster/column_schema" in node.metadata) is (name not in ("monthly_report", *OF_THE_PLATFORM))
        assert (node.partitions_def is None) is (name in OF_THE_PLATFORM)


def test_the_checks_are_the_ones_of_the_design(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    checks = {(key.asset_key.to_user_string(), key.name): graph.get(key) for key in graph.asset_check_keys}
    assert {key: check.blocking for key, check in checks.items()} == CHECKS
    for check in checks.values():
        assert check.description
        assert check.partitions_def is not None


def before(name: str) -> set[str]:
    """Every asset that *name* rests on."""
    return GRAPH[name].union(*(before(parent) for parent in GRAPH[name]))


def test_an_asset_waits_for_its_inputs_gates_and_all_failure_budgets() -> None:
    for asset in STAGE_ASSETS:
        name = asset.stage.value
        assert {(stage.value, check) for stage, check in asset.gates} == {
            key
            for key, blocking in CHECKS.items()
            if blocking and (key[0] in GRAPH[name] or (key[1] == "failures_within_budget" and key[0] in before(name)))
            # these read what was released, by whomever
            if name not in FROM_A_RELEASE
        }


def test_jobs_and_schedule_are_the_documented_ones(definitions: dg.Definitions) -> None:
    repository = definitions.get_repository_def()
    assert {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")} == {
        "month",
        "dashboard",
        "housekeeping",
        "helper",
        "backup",
        "look_at_operations",
        *(f"{stage.value}_only" for stage in Stage),
    }
    month = definitions.resolve_job_def("month").asset_layer.executable_asset_keys
    names = {key.to_user_string() for key in month}
    assert names == {stage.value for stage in MONTH_STAGES} == set(GRAPH) - FROM_A_RELEASE
    dashboard = definitions.resolve_job_def("dashboard").asset_layer.executable_asset_keys
    assert {key.to_user_string() for key in dashboard} == set(DASHBOARD_GRAPH)
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "helpers",
        "listed_dashboards",
        "failed_runs",
        "failed_checks",
        "late_months",
    }
    schedules = {schedule.name: schedule for schedule in repository.schedule_defs}
    assert {name: schedule.cron_schedule for name, schedule in schedules.items()} == {
        "monthly": "0 2 25 * *",
        "housekeeping_daily": "30 4 * * *",
        "backup_daily": "30 3 * * *",
        "operations_hourly": "15 * * * *",
    }
    schedule = schedules["monthly"]
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 3, 25, 2, 0, tzinfo=UTC), repository_def=repository
    )
    requests = schedule.evaluate_tick(context).run_requests
    assert [request.partition_key for request in requests or []] == ["2026-02"]


LOADING = """
import os, sys
import dagster  # whose own imports ask the whole environment which machine this is

asked, opened = set(), []
read = type(os.environ).__getitem__

def recording(environment, name):
    asked.add(name)
    return read(environment, name)

def note(event, arguments):
    if event == "open":
        opened.append(str(arguments[0]))

folder = os.getcwd()
type(os.environ).__getitem__ = recording
sys.addaudithook(note)
import formulacode_dagster.definitions
formulacode_dagster.definitions.defs.get_repository_def()
"""
WHAT_IS_HEAVY = f"print([name for name in {HEAVY!r} if name in sys.modules])"
WHAT_WAS_READ = """
from resources.documentation import SETTINGS
names = {setting.name for setting in SETTINGS}
print(sorted(asked & names), [path for path in opened if folder in path or ".env" in path])
"""
READING = "import os; os.environ.get('FC_CPUS'); open('.env')"


@pytest.mark.slow
def test_loading_imports_no_heavy_library_and_reads_one_setting_and_no_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BAD='unclosed\n")
    # whoever reads any of these, one by one or all of them, is seen
    settings = {setting.name: str(tmp_path) for setting in SETTINGS} | {"FC_FIRST_MONTH": "2020-01"}
    loaded = subprocess.run(
        [sys.executable, "-c", "\n".join((LOADING, WHAT_IS_HEAVY, WHAT_WAS_READ, READING, WHAT_WAS_READ))],
        env={**BARE, **settings},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert loaded.stdout.splitlines() == ["[]", "['FC_FIRST_MONTH'] []", "['FC_CPUS', 'FC_FIRST_MONTH'] ['.env']"]


@pytest.mark.slow
def test_the_code_location_loads_without_any_secret() -> None:
    command = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate", "-w", "workspace.yaml"]
    validated = subprocess.run(command, env=BARE, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert validated.returncode == 0, validated.stderr
