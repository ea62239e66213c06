"""The content of a folder that code of others has written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process import layout as module
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.process.layout import Layout
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
