from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from formulacode_dagster.releasing.replays.portable.contents import ArchiveRefusedError, Contents


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "oci").mkdir()
    (tmp_path / "oci" / "blob").write_bytes(b"layer")
    files = {"oci/blob": hashlib.sha256(b"layer").hexdigest()}
    (tmp_path / "manifest.json").write_text(json.dumps({"files": files, "tasks": []}))
    return tmp_path


def test_files_as_they_were_packed_are_counted(archive: Path) -> None:
    assert Contents(str(archive)).verify() == len(b"layer")


def test_a_file_that_differs_is_named_with_both_hashes(archive: Path) -> None:
    (archive / "oci" / "blob").write_bytes(b"laser")
    with pytest.raises(ArchiveRefusedError, match=r"oci/blob hashes to \w{64}, not to \w{64}"):
        Contents(str(archive)).verify()


def test_a_missing_file_is_named(archive: Path) -> None:
    (archive / "oci" / "blob").unlink()
    with pytest.raises(ArchiveRefusedError, match="oci/blob cannot be read"):
        Contents(str(archive)).verify()


def test_an_archive_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefusedError, match=r"manifest\.json cannot be read"):
        Contents(str(tmp_path))
