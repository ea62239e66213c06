"""A backup that somebody changed is refused: paths that lead out of it, links, and whatever its MAC covers."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.backups.backup import back_up
from formulacode_dagster.operating.backups.manifest import (
    MAC,
    MANIFEST,
    BackupFile,
    BackupManifest,
    read_manifest,
    sha256_of,
    write_manifest,
)
from formulacode_dagster.operating.files.atomic import private_folder
from formulacode_dagster.operating.store.database import Database


def backup_with(folder: Path, path: str, key: str = "") -> Path:
    """A backup whose only file is at *path*, with the hash that it has."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_bytes(b"content")
    # an attacker does not validate
    named = BackupFile.model_construct(path=path, bytes=7, sha256=sha256_of(file))
    manifest = BackupManifest(
        made_at=datetime(2026, 1, 1, tzinfo=UTC), version="1", migrations=(), encrypted=False, tables=(), files=(named,)
    )
    write_manifest(manifest, folder, key)
    return folder


@pytest.mark.parametrize("path", ["dagster-files/../../escaped.db.zst", "../escaped.db.zst", "a.db.zst", "other/a.zst"])
def test_a_path_out_of_the_backup_is_refused(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "backup"
    (folder / "dagster-files").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="leads out of the backup"):
        read_manifest(backup_with(folder, path))


def test_an_absolute_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="leads out of the backup"):
        read_manifest(backup_with(tmp_path / "backup", str(tmp_path / "escaped.db.zst")))


def test_a_link_out_of_the_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the user who restores")
    link = tmp_path / "backup" / "dagster-files" / "runs.db.zst"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match="leads out of the backup"):
        read_manifest(backup_with(tmp_path / "backup", "dagster-files/runs.db.zst"))


def test_with_a_key_a_changed_manifest_is_refused(tmp_path: Path) -> None:
    folder = backup_with(tmp_path / "backup", "dagster-files/runs.db.zst", key="long and random")
    assert read_manifest(folder, "long and random") == read_manifest(folder)
    with pytest.raises(ConfigurationError, match="has another MAC"):
        read_manifest(folder, "of somebody else")
    (folder / "dagster-files" / "runs.db.zst").write_bytes(b"changed")
    backup_with(folder, "dagster-files/runs.db.zst")
    # its hashes are right again
    assert read_manifest(folder)
    with pytest.raises(ConfigurationError, match="has another MAC"):
        read_manifest(folder, "long and random")
    (folder / MAC).unlink()
    with pytest.raises(ConfigurationError, match="has no MAC"):
        read_manifest(folder, "long and random")


def test_only_the_owner_can_read_a_backup(database: Database, tmp_path: Path) -> None:
    home = tmp_path / "dagster"
    home.mkdir()
    folder, manifest = back_up(database, home, tmp_path / "backups", key="long and random")
    assert read_manifest(folder, "long and random") == manifest
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}
    assert (folder / MANIFEST).is_file()


def test_an_open_folder_of_an_earlier_version_is_closed(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir(mode=0o755)
    assert private_folder(tmp_path / "reports").stat().st_mode & 0o777 == 0o700
    assert private_folder(tmp_path / "builds").stat().st_mode & 0o777 == 0o700
