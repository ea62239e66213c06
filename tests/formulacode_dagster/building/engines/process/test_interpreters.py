"""Interpreters of the machine that are inspected."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.interpreters import installed_interpreters


def test_uv_is_not_shown_the_shims_of_pyenv_and_its_versions_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "pyenv" / "versions" / "3.99.0" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$PATH" >{tmp_path}/path\necho "[]"\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"{tmp_path}/pyenv/shims:{tmp_path}/other:{os.environ['PATH']}")
    (minor,) = installed_interpreters(str(uv))
    assert minor == f"{sys.version_info.major}.{sys.version_info.minor}"
    shown = (tmp_path / "path").read_text().split(":")
    assert str(tmp_path / "other") in shown
    assert str(tmp_path / "pyenv" / "shims") not in shown


def test_they_are_looked_for_once_in_each_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$PYENV_ROOT" >>{tmp_path}/asked\necho "[]"\n')
    uv.chmod(0o755)
    for root in ("one", "one", "another"):
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path / root))
        installed_interpreters(str(uv))
    assert (tmp_path / "asked").read_text().splitlines() == [str(tmp_path / root) for root in ("one", "another")]
