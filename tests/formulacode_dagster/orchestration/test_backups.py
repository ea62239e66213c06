"""The daily backup: written by a job, as many kept as are set."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.backups.manifest import read_manifest
from formulacode_dagster.operating.backups.object_store import ObjectStore
from formulacode_dagster.orchestration.backups import backup, folder_of
from resources.postgres import PostgresResource


@pytest.mark.usefixtures("database")
def test_the_job_writes_a_backup_and_removes_the_oldest(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance
) -> None:
    into = tmp_path / "backups"
    for name, value in {
        "FC_DATABASE_URL": database_url,
        "FC_HOME": str(tmp_path / "home"),
        "FC_BACKUP_DIR": str(into),
        "FC_BACKUPS_KEPT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    older = into / "2026-01-01T00-00-00Z"
    older.mkdir(parents=True)
    (older / "manifest.json").write_text("{}")
    done = backup.execute_in_process(instance=dagster_instance, resources={"postgres": PostgresResource()})
    (folder,) = into.iterdir()
    manifest = read_manifest(folder)
    told = next(event for event in done.all_events if event.is_successful_output).step_output_data.metadata
    assert (told["rows"].value, told["removed"].value) == (manifest.rows, 1)
    assert {table.table for table in manifest.tables} >= {"ledger", "logs", "blobs"}


def test_a_recipient_that_is_none_fails_the_job_by_name(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_BACKUP_RECIPIENT", "me")
    done = backup.execute_in_process(
        instance=dagster_instance, resources={"postgres": PostgresResource()}, raise_on_error=False
    )
    failure = done.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None
    assert "FC_BACKUP_RECIPIENT is not a public key of age" in str(failure.description)
    assert not (tmp_path / "home" / "backups").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_with_a_store_the_job_copies_complete_backups_and_prunes(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance
) -> None:
    import boto3
    from moto import mock_aws

    for name, value in {
        "FC_DATABASE_URL": database_url,
        "FC_HOME": str(tmp_path / "home"),
        "FC_BACKUP_STORE": "s3://backups/fc",
        "FC_BACKUPS_KEPT": "1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="backups")
        client.put_object(Bucket="backups", Key="fc/2026-01-01T00-00-00Z/manifest.json", Body=b"{}")
        done = backup.execute_in_process(instance=dagster_instance, resources={"postgres": PostgresResource()})
        told = next(event for event in done.all_events if event.is_successful_output).step_output_data.metadata
        name = Path(str(told["folder"].value)).name
        with folder_of(f"s3://backups/fc/{name}/", "") as folder:
            assert read_manifest(folder).rows == told["rows"].value
            assert not folder.is_relative_to(tmp_path)
    assert told["removed"].value == 1


@pytest.mark.usefixtures("database")
def test_while_the_store_is_down_no_more_are_kept_in_the_folder(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance
) -> None:
    def refuse(*_: object) -> str:
        raise OutsideSystemError("backup store", "cannot upload")

    for name, value in {
        "FC_DATABASE_URL": database_url,
        "FC_HOME": str(tmp_path / "home"),
        "FC_BACKUP_DIR": str(tmp_path / "backups"),
        "FC_BACKUP_STORE": "s3://backups/fc",
        "FC_BACKUPS_KEPT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ObjectStore, "upload", refuse)
    older = tmp_path / "backups" / "2026-01-01T00-00-00Z"
    older.mkdir(parents=True)
    (older / "manifest.json").write_text("{}")
    resources = {"postgres": PostgresResource()}
    done = backup.execute_in_process(instance=dagster_instance, resources=resources, raise_on_error=False)
    assert not done.success, "who runs the platform is told"
    assert [folder for folder in (tmp_path / "backups").iterdir() if folder != older] != []
    assert not older.exists()


def test_a_folder_is_taken_from_where_it_is() -> None:
    with folder_of("/backups/2026-01-01T00-00-00Z", "") as folder:
        assert folder == Path("/backups/2026-01-01T00-00-00Z")
