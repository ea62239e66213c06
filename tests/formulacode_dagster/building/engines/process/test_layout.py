"""The content of a folder that code of others has written to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import RECORD_HASHES
from formulacode_dagster.building.engines.process import layout as module
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.process.layout import Layout
from formulacode_dagster.building.specs.recipes import script
from formulacode_dagster.models.image import EngineName
from tests.records import make_image


@pytest.fixture
def folder(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "image")
    layout.make()
    (layout.task / "base-sha").write_text("a" * 40)
    (layout.venv / "lib").mkdir()
    return layout


def test_a_pipe_is_neither_waited_for_nor_listed(folder: Layout) -> None:
    before = folder.digest()
    os.mkfifo(folder.venv / "lib" / "pipe")
    assert folder.digest() != before
    image = make_image(engine=EngineName.PROCESS, location=str(folder.folder))
    assert [file.path for file in ProcessEngine(folder.folder.parent).files(image)] == ["task/base-sha"]


def test_only_a_record_of_an_installers_length_is_read_whole(folder: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    record = folder.venv / "lib" / "RECORD"
    record.write_text("a.py,,\n")
    before = folder.digest()
    record.write_text("a.py,,\na-1.0.dist-info/direct_url.json,,\n")
    assert folder.digest() == before, "differs from build to build"
    monkeypatch.setattr(module, "_RECORD_BYTES", 8)
    assert folder.digest() != before


def test_records_are_hashed_as_by_the_script_of_the_other_engine(folder: Layout) -> None:
    site = folder.venv / "lib/python3.11/site-packages"
    for name in ("b-1.0", "a b-1.0", "a-1.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
        (site / f"{name}.dist-info/RECORD").write_text(f"{name}.py,,\n")
    (site / "c-1.0.dist-info").mkdir()
    (site / "c-1.0.dist-info/RECORD").symlink_to(site / "a-1.0.dist-info/RECORD")
    hashes = folder.folder / RECORD_HASHES
    folder.hash_records()
    ours = hashes.read_text()
    variables = {"FC_VENV": str(folder.venv), "FC_TASK": str(folder.task)}
    subprocess.run([script("hash-records")], env={**os.environ, **variables}, check=True)
    assert sorted(ours.splitlines()) == sorted(hashes.read_text().splitlines())
    assert len(ours.splitlines()) == 3
