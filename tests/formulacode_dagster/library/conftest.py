"""An `astropy/astropy` on localhost, and the settings that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.github import app
from sandbox.server import serving
from tests.support.library import FACTS, Served


@pytest.fixture
def served(
    github_folder: Callable[..., Path], database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    folder = github_folder(FACTS)
    with serving(app(folder)) as url:
        settings = {
            "GITHUB_API_URL": url,
            "GITHUB_CLONE_URL": folder.as_uri(),
            "GH_TOKENS": "sandbox",
            "FC_HOME": str(tmp_path / "home"),
            "FC_DATABASE_URL": database_url,
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        yield Served(url)
