"""Backups in a store that speaks S3, as moto plays it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.backups import object_store
from formulacode_dagster.operating.backups.manifest import MANIFEST
from formulacode_dagster.operating.backups.object_store import ObjectStore

BUCKET = "backups"
STORE = ObjectStore.of(f"s3://{BUCKET}/fc/")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The SDK's client; the bucket is there."""
    import boto3
    from moto import mock_aws

    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client


def backup(folder: Path, name: str) -> Path:
    """A folder as `back_up` leaves it."""
    for path, content in (("platform/ledger.copy.zst", b"rows"), (MANIFEST, b"{}")):
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder / name


def fresh() -> ObjectStore:
    """The same store by a client of its own, as moto plays it now."""
    return ObjectStore(STORE.bucket, STORE.prefix)


def keys(s3: Any) -> list[str]:
    return [stored["Key"] for stored in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


def cut_off(store: ObjectStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload *folder* until its manifest's turn, as a process that is killed then."""
    upload = store._client.upload_file

    def until_manifest(path: str, *args: Any) -> None:
        if path.endswith(MANIFEST):
            raise KeyboardInterrupt
        upload(path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(store._client, "upload_file", until_manifest)
        with pytest.raises(KeyboardInterrupt):
            store.upload(folder)


@pytest.mark.slow
def test_what_is_uploaded_comes_back_as_it_was(s3: Any, tmp_path: Path) -> None:
    store = fresh()
    assert store.newest() is None
    told = store.upload(backup(tmp_path, "2026-03-01T03-30-00Z"))
    assert told == f"s3://{BUCKET}/fc/2026-03-01T03-30-00Z"
    folder = store.download("2026-03-01T03-30-00Z", tmp_path / "back")
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == {
        "platform/ledger.copy.zst": b"rows",
        MANIFEST: b"{}",
    }
    assert store.newest() is not None


def test_an_upload_that_was_cut_is_no_backup_and_goes_after_a_day(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fresh()
    cut_off(store, backup(tmp_path, "2026-03-02T03-30-00Z"), monkeypatch)
    store.upload(backup(tmp_path, "2026-03-01T03-30-00Z"))
    with pytest.raises(ConfigurationError, match=r"no complete backup '2026-03-02.*Take one of 2026-03-01T03-30-00Z"):
        store.download("2026-03-02T03-30-00Z", tmp_path / "back")
    s3.create_multipart_upload(Bucket=BUCKET, Key="fc/2026-03-02T03-30-00Z/platform/big.copy.zst")
    assert store.prune(1) == (), "somebody may be uploading it just now"
    monkeypatch.setattr(object_store, "CUT_AFTER_SECONDS", -60.0)
    assert store.prune(1) == ("2026-03-02T03-30-00Z",)
    assert keys(s3) == ["fc/2026-03-01T03-30-00Z/manifest.json", "fc/2026-03-01T03-30-00Z/platform/ledger.copy.zst"]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


def test_the_newest_are_kept_and_what_others_keep_there_too(s3: Any, tmp_path: Path) -> None:
    store = fresh()
    s3.put_object(Bucket=BUCKET, Key="others/file", Body=b"theirs")
    for day in (1, 2, 3):
        store.upload(backup(tmp_path, f"2026-03-0{day}T03-30-00Z"))
    assert store.prune(2) == ("2026-03-01T03-30-00Z",)
    left = {key.split("/")[1] for key in keys(s3)}
    assert left == {"2026-03-02T03-30-00Z", "2026-03-03T03-30-00Z", "file"}
    assert store.prune(2) == ()


def test_a_removal_that_is_cut_leaves_no_backup(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh()
    for day in (1, 2):
        store.upload(backup(tmp_path, f"2026-03-0{day}T03-30-00Z"))
    delete = ObjectStore._delete
    deleted: list[list[str]] = []

    def once(self: ObjectStore, names: list[str]) -> None:
        if deleted:
            raise KeyboardInterrupt
        deleted.append(names)
        delete(self, names)

    monkeypatch.setattr(ObjectStore, "_delete", once)
    with pytest.raises(KeyboardInterrupt):
        store.prune(1)
    with pytest.raises(ConfigurationError, match="no complete backup"):
        store.download("2026-03-01T03-30-00Z", tmp_path / "back")


def test_a_missing_bucket_and_a_dead_store_are_reported(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(OutsideSystemError, match="cannot upload 2026-03-01T03-30-00Z"):
        ObjectStore.of("s3://nowhere").upload(backup(tmp_path, "2026-03-01T03-30-00Z"))


@pytest.mark.parametrize("url", ["", "backups", "file:///backups", "s3://"])
def test_an_address_that_is_no_store_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="Write s3://bucket/prefix"):
        ObjectStore.of(url)


@pytest.mark.usefixtures("s3")
def test_a_store_other_than_amazons_is_asked_at_its_own_address() -> None:
    store = ObjectStore.of("s3://bucket", "http://127.0.0.1:9")
    assert store._client.meta.endpoint_url == "http://127.0.0.1:9"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3.exceptions", None)
    with pytest.raises(ConfigurationError, match=r"Install formulacode-dagster\[s3\]"):
        fresh().newest()
