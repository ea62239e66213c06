from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from typer.testing import CliRunner

from formulacode_dagster.cli.app import app
from formulacode_dagster.orchestration.build import build_definitions
from formulacode_dagster.orchestration.jobs import HOUSEKEEPING_JOB, HOUSEKEEPING_SCHEDULE
from resources.containers import ContainersResource

Run = Callable[..., tuple[bool, dict[str, Any]]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Path:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_ENGINE", "process")
    # what other processes of this machine left is none of these tests' business
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "builds" / "building" / "half").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def run(home: Path, dagster_instance: dg.DagsterInstance) -> Run:
    """Run the job: return its success, and its report."""
    job = build_definitions().resolve_job_def(HOUSEKEEPING_JOB.name)

    def execute(config: dict[str, Any] | None = None) -> tuple[bool, dict[str, Any]]:
        result = job.execute_in_process(run_config=config, raise_on_error=False, instance=dagster_instance)
        outputs = [event.step_output_data.metadata for event in result.all_node_events if event.is_successful_output]
        told = {name: value for metadata in outputs for name, value in metadata.items()}
        return result.success, {name: getattr(value, "records", value.value) for name, value in told.items()}

    return execute


def test_by_hand_it_only_says_what_would_go(home: Path, run: Run) -> None:
    success, told = run()
    assert success
    assert (told["dry_run"], told["containers_and_folders_of_dead_runs"], told["bytes_freed"]) == (True, 1, 0)
    assert "to remove: leftovers of dead processes 1" in told["summary"]
    assert "database: to remove: attempts 0, logs 0" in told["summary"]
    assert "Dagster: to remove: runs 0" in told["summary"]
    assert (home / "builds" / "building" / "half").is_dir()


@pytest.mark.slow
def test_as_the_schedule_runs_it_it_removes_and_records_what(home: Path, run: Run) -> None:
    # a schedule asks no instance in memory
    with dg.instance_for_test() as instance:
        tick = HOUSEKEEPING_SCHEDULE.evaluate_tick(dg.build_schedule_context(instance))
    (request,) = tick.run_requests or []
    success, told = run(dict(request.run_config))
    assert success
    (gone,) = told["removed"]
    assert gone.data["what"] == "half"
    assert told["dry_run"] is False
    assert not (home / "builds" / "building" / "half").exists()


@pytest.mark.slow
def test_it_tidies_up_while_a_stage_builds(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    job = build_definitions().resolve_job_def(HOUSEKEEPING_JOB.name)
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance:
        instance.event_log_storage.set_concurrency_slots("build", 1)
        assert instance.event_log_storage.claim_concurrency_slot("build", "a run", "images").is_claimed
        config = {"ops": {"tidy_up": {"config": {"dry_run": False}}}}
        assert job.execute_in_process(run_config=config, instance=instance).success
    assert not (home / "builds" / "building" / "half").exists()


def test_a_budget_that_is_no_number_fails_the_run_with_its_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_IMAGES_GB", "many")
    assert run()[0] is False


@pytest.mark.slow
def test_the_command_removes_only_when_told_to(home: Path) -> None:
    for remove in (False, True):
        told = (
            CliRunner().invoke(app, ["housekeeping", *(["--remove"] if remove else [])], catch_exceptions=False).stdout
        )
        assert "half" in told
        assert ("use --remove" in told) is not remove
        assert f"database: {'removed' if remove else 'to remove'}: attempts 0, logs 0" in told
        assert (home / "builds" / "building" / "half").exists() is not remove


def test_the_docker_daemon_is_tidied_where_it_is_the_engine(home: Path) -> None:
    containers = ContainersResource()
    assert [room.where for room in containers.image_stores()] == [str(home / "builds")]
    assert containers.budgets.images == 100 * 10**9
    assert containers.budgets.build_cache == 20 * 10**9
