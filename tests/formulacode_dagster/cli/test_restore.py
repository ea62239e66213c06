"""`fc-data backup` of a machine at work, and `fc-data restore` on another."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from formulacode_dagster.cli.upkeep.backup import backup, restore
from formulacode_dagster.operating.files.atomic import write_atomically
from formulacode_dagster.orchestration.runs import dagster_instance, set_pools

POOL = "measure"
LOCATION = GrpcServerCodeLocationOrigin(host="code", port=4266, location_name="formulacode")
LAUNCHED = RemoteJobOrigin(RemoteRepositoryOrigin(LOCATION, "__repository__"), "some_job")


@dg.job
def some_job() -> None:
    """Stands for any run."""


def held(instance: dg.DagsterInstance) -> set[str]:
    return instance.event_log_storage.get_concurrency_run_ids()


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_runs_in_progress_are_ended_and_hold_no_pool_after_a_restore(
    database_url: str,
    empty_database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path / "first"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    statuses = [
        *(dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING),
        *(dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.SUCCESS),
    ]
    with dagster_instance() as instance:
        set_pools(instance)
        runs = [
            instance.create_run_for_job(some_job, status=status, remote_job_origin=LAUNCHED).run_id
            for status in statuses
        ]
        instance.event_log_storage.claim_concurrency_slot(POOL, runs[0], "step")
        assert held(instance) == {runs[0]}
    kept = ("dashboards.toml", "dataset/releases/formulacode@2026-03/README.md")
    for path in kept:
        write_atomically(tmp_path / "first" / path, path.encode())
    backup(tmp_path / "backups")
    (folder,) = (tmp_path / "backups").iterdir()

    monkeypatch.setenv("FC_HOME", str(tmp_path / "second"))
    monkeypatch.setenv("FC_DATABASE_URL", empty_database_url)
    restore(str(folder))
    assert [(tmp_path / "second" / path).read_bytes() for path in kept] == [path.encode() for path in kept]
    assert "ended 2 runs" in " ".join(capsys.readouterr().out.split())
    with dagster_instance() as instance:
        found = [instance.get_run_by_id(run_id) for run_id in runs]
        canceled = dg.DagsterRunStatus.CANCELED
        assert [run.status for run in found if run] == [canceled, canceled, *statuses[2:]]
        assert held(instance) == set()
        assert instance.event_log_storage.claim_concurrency_slot(POOL, "another run", "step").is_claimed
